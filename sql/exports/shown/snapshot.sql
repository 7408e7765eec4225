-- Its row is everybody's, but for the inputs that it names.
true
