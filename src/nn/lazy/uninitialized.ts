// A parameter or buffer without a shape: what a lazy layer has until its first call. PyTorch's torch.nn.parameter.UninitializedParameter.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { empty } from '../../ops/index.ts'
import { INSPECT, isObject } from '../../protocol/index.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { Parameter } from '../parameter.ts'

/** Options of {@link UninitializedParameter}. */
export interface UninitializedOptions {
  readonly dtype?: DType
  /** Default true. */
  readonly requiresGrad?: boolean
}

const UNINITIALIZED = Symbol('uninitialized')

/** Whether a value is a parameter or buffer without a shape. PyTorch's `is_lazy`. */
export const isUninitialized = (value: unknown): boolean => isObject(value) && Reflect.get(value, UNINITIALIZED) === true

/** What can be read without a shape. */
const KNOWN: ReadonlySet<string> = new Set(['dtype', 'isParameter', 'requiresGrad', 'grad', 'isLeaf', 'constructor'])

const notYet = (what: string, name: string): ArgumentError =>
  new ArgumentError(
    `${what}: cannot read '${name}' of it, as it has no shape yet. A lazy layer makes its parameters when it is first called: call the model with a batch of data before you use them.`,
  )

/** The tensor `inner` as one that has no shape and no values. `again` makes another like it, for copies of modules. */
function shapeless<T extends Tensor>(inner: T, what: string, again: () => T): T {
  const text = (): string => `<${what}>`
  return new Proxy(inner, {
    get(target, key) {
      if (key === UNINITIALIZED) return true
      if (key === 'detach' || key === 'clone' || key === 'asParameter') return again
      if (key === 'toString' || key === Symbol.toPrimitive || key === INSPECT) return text
      if (typeof key === 'symbol' || KNOWN.has(key)) return Reflect.get(target, key, target)
      if (key === 'then') return undefined
      throw notYet(what, key)
    },
    set(target, key, value) {
      if (key !== 'requiresGrad' && key !== 'grad') throw notYet(what, String(key))
      return Reflect.set(target, key, value, target)
    },
  })
}

/** A parameter without a shape. */
export interface UninitializedParameter extends Parameter {}

/** Makes parameters without a shape: `new UninitializedParameter()`. PyTorch's `torch.nn.parameter.UninitializedParameter`. */
export class UninitializedParameter {
  constructor({ dtype = getDefaultDtype(), requiresGrad = true }: UninitializedOptions = {}) {
    return shapeless(
      new Parameter(empty([0], { dtype }), { requiresGrad }),
      'UninitializedParameter',
      () => new UninitializedParameter({ dtype, requiresGrad }),
    )
  }
}

/** A buffer without a shape. */
export interface UninitializedBuffer extends Tensor {}

/** Makes buffers without a shape. PyTorch's `torch.nn.parameter.UninitializedBuffer`. */
export class UninitializedBuffer {
  constructor({ dtype = getDefaultDtype() }: Pick<UninitializedOptions, 'dtype'> = {}) {
    return shapeless(empty([0], { dtype }), 'UninitializedBuffer', () => new UninitializedBuffer({ dtype }))
  }
}
