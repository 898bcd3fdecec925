// Functions of the languages themselves that graphs may call: Python's `len` and `math`, JavaScript's Map. Given a traced value they record a node.
import { ArgumentError } from '../errors/index.ts'
import { isTensorLike, nameTarget } from '../protocol/index.ts'
import { wrap } from './wrap.ts'

/** The length of an array, string, Map or Set, or a tensor's first dimension; recorded when the value is traced. PyTorch: `torch.fx.wrap('len')`. */
export const len: (value: unknown) => number = wrap(
  (value: unknown): number => {
    if (Array.isArray(value) || typeof value === 'string') return value.length
    if (value instanceof Map || value instanceof Set) return value.size
    if (isTensorLike(value) && value.shape.length > 0) return value.shape[0] as number
    throw new ArgumentError('len: expected an array, a string, a Map, a Set or a tensor of at least one dimension.')
  },
  { name: 'builtins.len' },
)

type MathFunction = {
  readonly [K in keyof Math]: Math[K] extends (...args: never[]) => number ? K : never
}[keyof Math]

/** The functions of `Math`, recorded when given traced values: `math.sqrt(x.size(0))`. PyTorch records Python's math module by itself (autowrap). */
export const math: { readonly [K in Exclude<MathFunction, symbol | undefined>]: Math[K] } = Object.fromEntries(
  Object.getOwnPropertyNames(Math)
    .filter((name) => typeof Math[name as 'sqrt'] === 'function' && name !== 'random')
    .map((name) => [name, wrap(Math[name as 'sqrt'], { name: `math.${name}` })]),
) as never

/** A Map of these entries: how a graph holds a Map of traced values. */
export const mapOf: (entries: readonly (readonly [unknown, unknown])[]) => Map<unknown, unknown> = nameTarget(
  Object.defineProperty((entries: readonly (readonly [unknown, unknown])[]): Map<unknown, unknown> => new Map(entries), 'name', {
    value: 'Map',
  }) as (entries: readonly (readonly [unknown, unknown])[]) => Map<unknown, unknown>,
  { name: 'builtins.Map' },
)
