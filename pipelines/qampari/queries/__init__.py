"""The kinds of queries, a module each: what makes their facts, answers and questions, group by group."""
