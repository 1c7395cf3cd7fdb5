"""What is asked and what is said: each dialect's requests, events and whole answers, and the record of an exchange."""
