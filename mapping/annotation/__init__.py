"""Tasks for people, and what they said."""
