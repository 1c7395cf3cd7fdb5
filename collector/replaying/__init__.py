"""What another spec would have made of the stored past."""
