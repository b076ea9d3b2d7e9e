"""Page views: the files that Wikimedia publishes become a release, a table of views by title."""
