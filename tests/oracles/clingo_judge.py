"""The ASP grounder and solver clingo as an independent judge of known-body grounding and of its fixpoint."""

import clingo

from r2n.logic.formula import Atom, Constant, Term
from r2n.logic.theory import Rule
from tests.oracles.grounding import GroundAtom, Substitution, World, body_of, domain_of, heads_of, variables_of

DECLARED = "".join(f"#defined true/{n}. #defined false/{n}. #defined member/2.\n" for n in range(2, 6))


def quoted(name: str) -> str:
    return str(clingo.String(name))


def term_text(rule: Rule, term: Term) -> str:
    """A term of ASP: `X3` for the fourth variable of the rule."""
    return quoted(term.name) if isinstance(term, Constant) else f"X{variables_of(rule).index(term.name)}"


def atom_text(functor: str, rule: Rule, atom: Atom) -> str:
    """`true("p", X0, X1)`."""
    return f"{functor}({', '.join([quoted(atom.predicate), *(term_text(rule, t) for t in atom.terms)])})"


def body_text(world: World, rule: Rule) -> str:
    """The typed variables, the body literals and the guards of a rule, joined by commas."""
    names = variables_of(rule)
    parts = [f"member({quoted(domain_of(world.theory, rule, v).name)}, X{i})" for i, v in enumerate(names)]
    for atom, positive, closed in body_of(world.theory, rule):
        if positive:
            parts.append(atom_text("true", rule, atom))
        elif closed:
            parts.append("not " + atom_text("given", rule, atom))
        else:
            parts.append(atom_text("false", rule, atom))
    parts += [f"{term_text(rule, g.left)} != {term_text(rule, g.right)}" for g in rule.guards]
    return ", ".join(parts)


def facts_text(world: World) -> str:
    """What is known, as facts of ASP."""
    lines = [f"member({quoted(d)}, {quoted(c)})." for d, names in world.members.items() for c in names]
    for functor, atoms in (("true", world.facts), ("given", world.facts), ("false", world.false_facts)):
        lines += [f"{functor}({', '.join(map(quoted, atom))})." for atom in sorted(atoms)]
    return "\n".join(lines) + "\n"


def only_model(program: str) -> list[clingo.Symbol]:
    """The atoms of the only stable model."""
    control = clingo.Control(logger=lambda code, message: None)
    control.add("base", [], program)
    control.ground([("base", [])])
    models: list[list[clingo.Symbol]] = []
    control.solve(on_model=lambda model: models.append(list(model.symbols(atoms=True))))
    (model,) = models
    return model


def known_body(world: World) -> list[list[Substitution]]:
    """Per rule, the substitutions whose body clingo derives (sorted by name)."""
    program = DECLARED + facts_text(world)
    for j, rule in enumerate(world.theory.rules):
        head = ", ".join([str(j), *(f"X{i}" for i in range(len(variables_of(rule))))])
        body = body_text(world, rule)
        program += f"ground({head}) :- {body}.\n" if body else f"ground({head}).\n"
    found: list[list[Substitution]] = [[] for _ in world.theory.rules]
    for symbol in only_model(program):
        if symbol.name == "ground":
            found[symbol.arguments[0].number].append(tuple(a.string for a in symbol.arguments[1:]))
    return [sorted(each) for each in found]


def least_model(world: World) -> frozenset[GroundAtom]:
    """What follows from the facts by the Horn rules of a theory without negation."""
    program = DECLARED + facts_text(world)
    for rule in world.theory.rules:
        (head,) = heads_of(rule)
        body = body_text(world, rule)
        program += atom_text("true", rule, head) + (f" :- {body}.\n" if body else ".\n")
    true = [s for s in only_model(program) if s.name == "true"]
    return frozenset(tuple(argument.string for argument in symbol.arguments) for symbol in true)
