% facts
h(X,Y) :- p(X,Z), q(Z,Y).
h(X, a) :- p(X, 'b').
