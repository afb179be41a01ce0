"""What is compared: scenario files, their model, the runner, the command line."""
