// Built-in functions that graphs can call: Python's `len` and `math`, and JavaScript's Map. With a traced argument they record a node.
import { ArgumentError } from '../../errors/index.ts'
import { isFunction, isTensorLike, nameTarget, withName } from '../../protocol/index.ts'
import { wrap } from './wrap.ts'

/**
 * The length of an array or string, the size of a Map or Set, or the first dimension of a tensor. Recorded if the value is traced. Throws ArgumentError for what has no length.
 * PyTorch: `torch.fx.wrap('len')`.
 */
export const len: (value: unknown) => number = wrap(
  (value: unknown): number => {
    if (Array.isArray(value) || typeof value === 'string') return value.length
    if (value instanceof Map || value instanceof Set) return value.size
    const [first] = isTensorLike(value) ? value.shape : []
    if (first !== undefined) return first
    throw new ArgumentError('len: expected an array, a string, a Map, a Set or a tensor of at least one dimension.')
  },
  { name: 'builtins.len' },
)

type MathFunction = {
  readonly [K in keyof Math]: Math[K] extends (...args: never[]) => number ? K : never
}[keyof Math]

/** The functions of `Math`, recorded if an argument is traced: `math.sqrt(x.size(0))`. PyTorch records its math module without this (autowrap). */
export const math: { readonly [K in Exclude<MathFunction, symbol | undefined>]: Math[K] } = Object.fromEntries(
  Object.getOwnPropertyNames(Math).flatMap((name) => {
    const fn: unknown = Reflect.get(Math, name)
    return isFunction(fn) && name !== 'random' ? [[name, wrap(fn, { name: `math.${name}` })]] : []
  }),
) as never

/** Makes a Map of entries. A graph calls it to build a Map of traced values. */
export const mapOf: (entries: readonly (readonly [unknown, unknown])[]) => Map<unknown, unknown> = nameTarget(
  withName((entries: readonly (readonly [unknown, unknown])[]): Map<unknown, unknown> => new Map(entries), 'Map'),
  { name: 'builtins.Map' },
)
