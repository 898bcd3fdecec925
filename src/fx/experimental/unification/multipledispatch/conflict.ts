// The order of signatures, and signatures between which no order decides. PyTorch's torch.fx.experimental.unification.multipledispatch.conflict.
import { ArgumentError } from '../../../../errors/index.ts'
import { toposort } from '../utils.ts'
import { isSubclass, isvariadic } from './variadic.ts'
import type { ArgumentType } from './variadic.ts'

/** The types of the arguments of a call; a variadic type may come last. */
export type Signature = readonly ArgumentType[]

/** Types of the same position in two signatures; a variadic type repeats. Null if one signature has arguments that the other cannot have. */
function pairs(a: Signature, b: Signature): readonly (readonly [ArgumentType, ArgumentType])[] | null {
  const found: (readonly [ArgumentType, ArgumentType])[] = []
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const [one, other] = [a[i] ?? lastVariadic(a), b[i] ?? lastVariadic(b)]
    // A variadic type that nothing stands against may have no arguments.
    if (one === undefined || other === undefined) {
      if (!isvariadic(one ?? other)) return null
    } else found.push([one, other])
  }
  return found
}

function lastVariadic(signature: Signature): ArgumentType | undefined {
  const last = signature.at(-1)
  return isvariadic(last) ? last : undefined
}

/** Whether every call that fits `a` fits `b`. PyTorch's supercedes. */
export function supercedes(a: Signature, b: Signature): boolean {
  if (a.length < b.length && !(a.length === b.length - 1 && lastVariadic(b) !== undefined && lastVariadic(a) === undefined)) return false
  if (lastVariadic(a) !== undefined && lastVariadic(b) === undefined) return false
  const found = pairs(a, b)
  return found !== null && found.every(([one, other]) => isSubclass(one, other))
}

/** Whether a call can fit both signatures. PyTorch's consistent. */
export function consistent(a: Signature, b: Signature): boolean {
  const found = pairs(a, b)
  return found !== null && found.every(([one, other]) => isSubclass(one, other) || isSubclass(other, one))
}

/** Whether a call can fit both signatures, and neither is more specific. PyTorch's ambiguous. */
export const ambiguous = (a: Signature, b: Signature): boolean => consistent(a, b) && !supercedes(a, b) && !supercedes(b, a)

/** The pairs of signatures that are {@link ambiguous} and have no signature that is more specific than both. PyTorch's ambiguities. */
export function ambiguities(signatures: Iterable<Signature>): (readonly [Signature, Signature])[] {
  const all = [...signatures]
  return all.flatMap((a, i) =>
    all
      .slice(i + 1)
      .filter((b) => ambiguous(a, b) && !all.some((c) => supercedes(c, a) && supercedes(c, b)))
      .map((b) => [a, b] as const),
  )
}

/** How far a class is from the root. */
function depth(type: ArgumentType): number {
  let count = 0
  for (let at = isvariadic(type) ? null : type.prototype; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) count++
  return count
}

/**
 * A signature that settles an ambiguity: the most derived class of each position. PyTorch's super_signature.
 * @throws ArgumentError for signatures of different lengths.
 */
export function superSignature(signatures: readonly Signature[]): ArgumentType[] {
  const [first = []] = signatures
  if (signatures.some((signature) => signature.length !== first.length))
    throw new ArgumentError(`superSignature: the signatures must have the same length, got ${signatures.map((s) => s.length).join(', ')}.`)
  return first.map((start, i) =>
    signatures.reduce<ArgumentType>((deepest, signature) => {
      const type = signature[i] ?? deepest
      return depth(type) > depth(deepest) ? type : deepest
    }, start),
  )
}

/** The signatures, those that are more specific first, otherwise as given. PyTorch's ordering, which breaks ties by hash. */
export function ordering(signatures: Iterable<Signature>): Signature[] {
  const all = [...signatures]
  const before = (a: Signature, i: number, b: Signature, j: number): boolean => i !== j && supercedes(a, b) && (!supercedes(b, a) || i < j)
  return toposort(new Map(all.map((a, i) => [a, all.filter((b, j) => before(a, i, b, j))])))
}
