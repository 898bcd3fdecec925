// The inputs of a trace: placeholders for the parameters of a function, values for those that concreteArgs fixes, and how the generated function takes them (plain
// parameters, nested values, options objects).
import { ArgumentError } from '../../errors/index.ts'
import { isFunction } from '../../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../../pytree/index.ts'
import type { TreeSpec } from '../../pytree/index.ts'
import { _assert, _assertIsNone } from '../values/assertions.ts'
import { formatArg } from '../text/format.ts'
import { operator } from '../graph/operator.ts'
import { signatureOf } from './parameters.ts'
import type { Parameter, Property } from './parameters.ts'
import { lazyProxy, nodeOf } from '../values/proxy.ts'
import type { Proxied } from '../values/proxy.ts'
import { PyTreeCodeGen } from './pytreeCodegen.ts'
import { TraceError } from '../graph/errors.ts'
import type { TracerBase } from './tracerBase.ts'

/** The base class of values that stand for inputs; PyTorch's PHBase. */
export class PHBase {
  toString(): string {
    return 'PH'
  }
}

/** A PH whose properties are copied to the meta of its placeholder. Subclass it to add properties. PyTorch's PHWithMeta. */
export class PHWithMeta extends PHBase {
  readonly phKey: string | null

  constructor(phKey: string | null = null) {
    super()
    this.phKey = phKey
  }
}

/** In concreteArgs: this stays an input. PyTorch's torch.fx.PH. */
export const PH: PHBase = new PHBase()

/**
 * Values of parameters: an object by name (a pattern is named arg0, arg1, … by its position), or an array with one value per parameter. `PH`, also inside a nested
 * value, stays an input. Any other value is fixed: the program is traced for it, and the graph asserts that it gets it.
 */
export type ConcreteArgs = Readonly<Record<string, unknown>> | readonly unknown[]

/** The arguments of a function for a trace, and how its result becomes the value of the output node. */
export interface RootArgs {
  readonly values: readonly unknown[]
  /** The value of the output node for a result: its leaves, if the generated function takes nested values. */
  finish(result: unknown): unknown
}

const LEAF: TreeSpec = { kind: 'leaf' }

/** Creates the placeholders for `fn`. Throws ArgumentError for concreteArgs that do not match its parameters, and TraceError for a rest parameter of unknown length. */
export function makeRootArgs(tracer: TracerBase, fn: (...args: never[]) => unknown, concreteArgs: ConcreteArgs): RootArgs {
  const { parameters, readsArguments } = signatureOf(fn)
  if (readsArguments)
    throw new TraceError(
      'the function declares no parameters and reads `arguments`, so its inputs are not known',
      'Declare parameters, or a rest parameter (...args).',
    )
  return new RootArgsMaker(tracer, parameters, concreteArgs).make()
}

class RootArgsMaker {
  readonly #tracer: TracerBase
  readonly #parameters: readonly Parameter[]
  readonly #concrete: ReadonlyMap<string, unknown>
  /** The values of an array of concreteArgs, if the only parameter is `...rest`. */
  readonly #restValues: readonly unknown[] | null
  readonly #names: string[] = []
  readonly #specs: TreeSpec[] = []
  readonly #patterns: number[] = []

  constructor(tracer: TracerBase, parameters: readonly Parameter[], concreteArgs: ConcreteArgs) {
    this.#tracer = tracer
    this.#parameters = parameters
    const positional = isArray(concreteArgs)
    this.#restValues = positional && parameters.length === 1 && parameters[0]?.rest === true ? concreteArgs : null
    if (this.#restValues !== null) this.#concrete = new Map()
    else this.#concrete = positional ? this.#byPosition(concreteArgs) : this.#byName(concreteArgs)
  }

  #byPosition(values: readonly unknown[]): ReadonlyMap<string, unknown> {
    if (values.length !== this.#parameters.length)
      throw new ArgumentError(
        `concreteArgs: Tracing expected ${this.#parameters.length} arguments but got ${values.length} concrete arguments; pass one value for each parameter, and fx.PH for those that stay inputs.`,
      )
    return new Map(this.#parameters.map((p, i) => [p.name, values[i]]))
  }

  #byName(values: Readonly<Record<string, unknown>>): ReadonlyMap<string, unknown> {
    const names = this.#parameters.flatMap((p) => (p.properties === null ? [p.name] : [p.name, ...p.properties.map((q) => q.name)]))
    const unknown = Object.keys(values).find((name) => !names.includes(name))
    if (unknown !== undefined)
      throw new ArgumentError(
        `concreteArgs: the function has no parameter '${unknown}'; its parameters are ${names.join(', ') || 'none'}. Minifiers rename parameters: in minified code pass an array, one value for each.`,
      )
    return new Map(Object.entries(values))
  }

  make(): RootArgs {
    const values = this.#restValues === null ? this.#parameters.flatMap((p) => this.#valuesOf(p)) : this.#restInputs(this.#restValues)
    if (this.#specs.every((s) => s.kind === 'leaf')) return { values, finish: (result) => result }
    // The result is flattened only if an input other than an options object is nested.
    const nested = this.#specs.some((s, i) => s.kind !== 'leaf' && !this.#patterns.includes(i))
    const { graph } = this.#tracer
    const info = { origArgs: this.#names, inSpec: { kind: 'array' as const, children: this.#specs }, patterns: this.#patterns }
    graph.setCodegen(new PyTreeCodeGen({ ...info, outSpec: null }))
    const finish = (result: unknown): unknown => {
      if (!nested) return result
      const { leaves, spec } = treeFlatten(result)
      graph.setCodegen(new PyTreeCodeGen({ ...info, outSpec: spec }))
      return leaves
    }
    return { values, finish }
  }

  /** Makes an input for each value, if the only parameter is `...rest`. */
  #restInputs(values: readonly unknown[]): Proxied[] {
    return values.map((value, i) => {
      const input = this.#tracer.createProxy('placeholder', `input_${i}`, [], {})
      if (value instanceof PHWithMeta) transferAttributes(value, input)
      return input
    })
  }

  #valuesOf(parameter: Parameter): unknown[] {
    const { name, rest, properties } = parameter
    if (this.#concrete.has(name)) return rest ? this.#concreteRest(parameter) : [this.#concreteValue(parameter, this.#concrete.get(name))]
    if (parameter.hasHiddenDefault)
      throw new TraceError(
        `the pattern of parameter ${this.#parameters.indexOf(parameter) + 1} contains a default, which would never be used, because a traced value is never undefined`,
        'Give a default to the whole parameter or to a property of an options object, { scale = 2 } = {}, or fix the parameter with concreteArgs.',
      )
    if (rest) return this.#restElements(parameter)
    if (properties !== null) return [this.#optionsObject(parameter)]
    this.#describe(name, LEAF)
    return [this.#tracer.createProxy('placeholder', name, parameter.default, {})]
  }

  #describe(name: string, spec: TreeSpec): void {
    this.#names.push(name)
    this.#specs.push(spec)
  }

  #concreteValue(parameter: Parameter, value: unknown): unknown {
    const { leaves, spec } = treeFlatten(value)
    this.#describe(parameter.name, spec)
    return treeUnflatten(
      leaves.map((leaf, i) => this.#specialize(parameter.name, leaf, i + 1, spec.kind === 'leaf' ? parameter.default : [])),
      spec,
    )
  }

  /** `{ rest: [PH, 2] }`: one input per value. */
  #concreteRest(parameter: Parameter): unknown[] {
    const values = this.#concrete.get(parameter.name)
    if (!isArray(values)) throw new ArgumentError(`concreteArgs: '${parameter.name}' is a rest parameter; pass an array of values.`)
    return values.map((value, i) => {
      this.#describe(`${parameter.name}_${i + 1}`, LEAF)
      return this.#specialize(parameter.name, value, i + 1, [])
    })
  }

  /** Makes the input for a leaf. A fixed value also has an input, and an assertion on it. */
  #specialize(name: string, value: unknown, position: number, fallback: readonly [unknown?]): unknown {
    const input = this.#tracer.createProxy('placeholder', `${name}_${position}`, fallback, {})
    if (value instanceof PHBase) {
      if (value instanceof PHWithMeta) transferAttributes(value, input)
      return input
    }
    const specialized = `${name} has been specialized to have value ${formatArg(value)} but got another value`
    if (value === null || value === undefined) _assertIsNone(input, specialized)
    else if (['number', 'string', 'boolean', 'bigint'].includes(typeof value)) _assert(operator.eq(input, value), specialized)
    else
      console.warn(
        `Was not able to add assertion to guarantee correct input ${name} to specialized function. It is up to the user to make sure that your inputs match the inputs you specialized the function with.`,
      )
    return value
  }

  /** `...rest` without values: one input for all of them, whose elements the program reads. */
  #restElements(parameter: Parameter): unknown[] {
    const { name, elements } = parameter
    if (elements === null)
      throw new TraceError(
        `the rest parameter ...${name} has no known length, and the function does more with it than read single elements (${name}[0])`,
        `Tell how many values there are: symbolicTrace(fn, { concreteArgs: { ${name}: [fx.PH, fx.PH] } }).`,
      )
    this.#describe(name, LEAF)
    const all = this.#tracer.createProxy('placeholder', `*${name}`, [], {})
    return Array.from({ length: elements }, (_, i) =>
      lazyProxy(this.#tracer, () => this.#tracer.createProxy('call_function', operator.getitem, [all, i], {})),
    )
  }

  /** `{ scale = 2, bias }`: an input for each property, like Python's keyword arguments. In concreteArgs a property is named like a parameter. */
  #optionsObject(parameter: Parameter): unknown {
    const properties = parameter.properties ?? []
    this.#patterns.push(this.#names.length)
    this.#describe(parameter.name, { kind: 'object', keys: properties.map((p) => p.name), children: properties.map(() => LEAF) })
    const value = (p: Property): unknown =>
      this.#concrete.has(p.name)
        ? this.#specialize(p.name, this.#concrete.get(p.name), 1, p.default)
        : this.#tracer.createProxy('placeholder', p.name, p.default, {})
    return Object.fromEntries(properties.map((p) => [p.name, value(p)]))
  }
}

const isArray = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** Copies the properties of a PH to the meta of the input's node. */
function transferAttributes(from: PHWithMeta, to: Proxied): void {
  for (const [key, value] of Object.entries(from)) if (!isFunction(value) && !key.startsWith('_')) nodeOf(to).meta[key] = value
}
