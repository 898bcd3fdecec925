// Unification: the values of variables that make two terms equal. PyTorch's torch.fx.experimental.unification.core.
import { ArgumentError } from '../../../errors/index.ts'
import { pyRepr } from '../../text/format.ts'
import { compound } from './parts.ts'
import { isvar } from './variable.ts'

/** Values of variables, in the order in which they were found. It prints as `{~x: 1, ~y: ~z}`. */
export class Substitution extends Map<unknown, unknown> {
  override toString(): string {
    return `{${[...this].map(([key, value]) => `${pyRepr(key)}: ${pyRepr(value)}`).join(', ')}}`
  }
}

/** The value of a variable, following variables that stand for variables; any other term itself. Throws ArgumentError if the variables lead in a circle. PyTorch's walk. */
export function walk(term: unknown, substitution: ReadonlyMap<unknown, unknown>): unknown {
  let at = term
  for (let steps = 0; substitution.has(at) && isvar(at); steps++) {
    if (steps > substitution.size) throw new ArgumentError(`unification: the substitution goes in a circle at variable ${String(term)}.`)
    at = substitution.get(at)
  }
  return at
}

/** Whether a variable is part of a term. Each shared part is looked at once. */
function occurs(variable: unknown, term: unknown, substitution: ReadonlyMap<unknown, unknown>): boolean {
  const seen = new Set<unknown>()
  const stack = [term]
  while (stack.length > 0) {
    const at = walk(stack.pop(), substitution)
    if (at === variable) return true
    const parts = seen.has(at) ? null : compound(at)
    if (parts === null) continue
    seen.add(at)
    for (const part of parts.parts) stack.push(part)
  }
  return false
}

/**
 * The smallest extension of `substitution` that makes two terms equal; false if there is none. Arrays (tuples or not) and iterators of equal length unify element by
 * element, slices by their parts, plain objects, Maps and objects of classes that `unifiable` registered by their properties. A variable never stands for a term that
 * contains it, so the result is finite. `substitution` does not change. PyTorch's unify.
 *
 *     const [x, y] = [Var('x'), Var('y')]
 *     unify([1, x], [y, [2, y]])  // {~y: 1, ~x: [2, ~y]}
 *     unify(x, [x, 1])            // false
 */
export function unify(u: unknown, v: unknown, substitution: ReadonlyMap<unknown, unknown> = new Map()): Substitution | false {
  const result = new Substitution(substitution)
  const stack: [unknown, unknown][] = [[u, v]]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [a, b] = [walk(next[0], result), walk(next[1], result)]
    if (Object.is(a, b)) continue
    const [variable, term] = isvar(a) ? [a, b] : [b, a]
    if (isvar(variable)) {
      if (occurs(variable, term, result)) return false
      result.set(variable, term)
      continue
    }
    const pairs = pairsOf(a, b)
    if (pairs === null) return false
    for (let i = pairs.length - 1; i >= 0; i--) {
      const pair = pairs[i]
      if (pair !== undefined) stack.push(pair)
    }
  }
  return result
}

/** What must be equal for two terms to be equal; null if they never are. */
function pairsOf(a: unknown, b: unknown): [unknown, unknown][] | null {
  const [one, other] = [compound(a), compound(b)]
  if (one === null || other === null || one.kind !== other.kind || one.parts.length !== other.parts.length) return null
  if (one.keys === null || other.keys === null) return one.parts.map((part, i) => [part, other.parts[i]])
  const values = new Map(other.keys.map((key, i) => [key, other.parts[i]]))
  return one.keys.every((key) => values.has(key)) ? one.keys.map((key, i) => [one.parts[i], values.get(key)]) : null
}

/**
 * The term with the values of a substitution in the place of variables, also inside arrays, objects, Maps and slices. A variable without a value stays. PyTorch's reify.
 *
 *     reify([x, { k: y }], new Map([[x, 2]]))  // [2, { k: ~y }]
 *
 * @throws ArgumentError if the substitution makes a variable a part of itself, so that the result would be infinite.
 */
export function reify(term: unknown, substitution: ReadonlyMap<unknown, unknown>): unknown {
  const root: Frame = { term, build: null, missing: [term], done: [] }
  const frames: Frame[] = [root]
  /** What compound values became; undefined while their parts are at work. */
  const known = new Map<unknown, unknown>()
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const { missing } = frame
    if (missing.length === frame.done.length) {
      frames.pop()
      if (frame.build === null) break
      const changed = frame.done.some((part, i) => !Object.is(part, missing[i]))
      const value = changed ? frame.build(frame.done) : frame.term
      known.set(frame.term, value)
      frames.at(-1)?.done.push(value)
      continue
    }
    const at = walk(missing[frame.done.length], substitution)
    const parts = compound(at)
    if (parts === null) frame.done.push(at)
    else if (known.has(at)) {
      const value = known.get(at)
      if (value === undefined)
        throw new ArgumentError(`reify: the substitution makes a term a part of itself, at ${pyRepr(missing[frame.done.length])}.`)
      frame.done.push(value)
    } else {
      known.set(at, undefined)
      frames.push({ term: at, build: parts.build, missing: parts.parts, done: [] })
    }
  }
  return root.done[0]
}

/** A compound value whose parts are being replaced. */
interface Frame {
  readonly term: unknown
  readonly build: ((parts: readonly unknown[]) => unknown) | null
  readonly missing: readonly unknown[]
  readonly done: unknown[]
}
