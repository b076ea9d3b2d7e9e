"""What is read from files that Wikimedia publishes: one module a command."""
