"""The built-in mini-wiki: a small invented encyclopaedia in the same forms as real dumps."""
