"""What is looked for: pure functions over all facts, a file for each thing that is looked at. `table` has them all."""
