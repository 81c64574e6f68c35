p(a, b).
!q(c). not r('d e', "f\"").  % more
\+ s(/m/0x)
