// The inputs of a trace: placeholders for the parameters of a function, values for those that concreteArgs fixes, and how the generated function takes them (plain
// parameters, nested values, options objects).
import { ArgumentError } from '../../errors/index.ts'
import { isFunction } from '../../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../../pytree/index.ts'
import type { TreeSpec } from '../../pytree/index.ts'
import { _assert, _assertIsNone } from '../values/assertions.ts'
import { formatArg } from '../text/format.ts'
import { operator } from '../graph/operator.ts'
import { PHBase, PHWithMeta } from './concreteArgs.ts'
import type { ConcreteArgs } from './concreteArgs.ts'
import type { KnownValue } from './source/literals.ts'
import { signatureOf } from './parameters.ts'
import type { Parameter, Property } from './parameters.ts'
import { lazyProxy, nodeOf } from '../values/proxy.ts'
import type { Proxied } from '../values/proxy.ts'
import { PyTreeCodeGen } from './pytreeCodegen.ts'
import { TraceError } from '../graph/errors.ts'
import type { TracerBase } from './tracerBase.ts'

/** The arguments of a function for a trace, and how its result becomes the value of the output node. */
export interface RootArgs {
  readonly values: readonly unknown[]
  /** The value of the output node for a result: its leaves, if the generated function takes nested values. */
  finish(result: unknown): unknown
}

/** Creates the placeholders for `fn`. Throws ArgumentError for concreteArgs that do not match its parameters, and TraceError for a rest parameter of unknown length. */
export function makeRootArgs(tracer: TracerBase, fn: (...args: never[]) => unknown, concreteArgs: ConcreteArgs): RootArgs {
  const { parameters, readsArguments } = signatureOf(fn)
  if (readsArguments)
    throw new TraceError(
      'the function declares no parameters and reads `arguments`, so its inputs are not known',
      'Declare parameters, or a rest parameter (...args).',
    )
  const [first] = parameters
  if (isArray(concreteArgs) && parameters.length === 1 && first?.rest === true) return plainRootArgs(restInputs(tracer, concreteArgs))
  const inputs = new RootInputs(tracer, parameters, valuesByName(parameters, concreteArgs))
  return rootArgsOf(
    tracer,
    parameters.flatMap((parameter) => inputs.of(parameter)),
    inputs.described,
  )
}

const plainRootArgs = (values: readonly unknown[]): RootArgs => ({ values, finish: (result) => result })

/** The inputs with the code generator that they need: one that takes and returns nested values if an input is nested. */
function rootArgsOf(tracer: TracerBase, values: readonly unknown[], described: readonly DescribedInput[]): RootArgs {
  if (described.every(({ spec }) => spec.kind === 'leaf')) return plainRootArgs(values)
  const { graph } = tracer
  const origArgs = described.map(({ name }) => name)
  const inSpec: TreeSpec = { kind: 'array', children: described.map(({ spec }) => spec) }
  const patterns = described.flatMap(({ isOptions }, i) => (isOptions ? [i] : []))
  graph.setCodegen(new PyTreeCodeGen({ origArgs, inSpec, patterns, outSpec: null }))
  // Options objects alone do not make a function one of nested values.
  const flattensResult = described.some(({ spec, isOptions }) => spec.kind !== 'leaf' && !isOptions)
  if (!flattensResult) return plainRootArgs(values)
  const finish = (result: unknown): unknown => {
    const { leaves, spec } = treeFlatten(result)
    graph.setCodegen(new PyTreeCodeGen({ origArgs, inSpec, patterns, outSpec: spec }))
    return leaves
  }
  return { values, finish }
}

/** The fixed values by the names of parameters and of properties of options objects. */
function valuesByName(parameters: readonly Parameter[], concreteArgs: ConcreteArgs): ReadonlyMap<string, unknown> {
  if (isArray(concreteArgs)) {
    if (concreteArgs.length !== parameters.length)
      throw new ArgumentError(
        `concreteArgs: Tracing expected ${parameters.length} arguments but got ${concreteArgs.length} concrete arguments; pass one value for each parameter, and fx.PH for those that stay inputs.`,
      )
    return new Map(parameters.map(({ name }, i) => [name, concreteArgs[i]]))
  }
  const known = parameters.flatMap(({ name, properties }) => [name, ...(properties ?? []).map((property) => property.name)])
  const unknown = Object.keys(concreteArgs).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new ArgumentError(
      `concreteArgs: the function has no parameter '${unknown}'; its parameters are ${known.join(', ') || 'none'}. Minifiers rename parameters: in minified code pass an array, one value for each.`,
    )
  return new Map(Object.entries(concreteArgs))
}

/** An input for each value of an array of concreteArgs, for a function whose only parameter is `...rest`. */
function restInputs(tracer: TracerBase, values: readonly unknown[]): Proxied[] {
  return values.map((value, i) => {
    const input = placeholder(tracer, `input_${i}`, null)
    if (value instanceof PHWithMeta) copyToMeta(value, input)
    return input
  })
}

/** A parameter of the generated function. */
interface DescribedInput {
  readonly name: string
  readonly spec: TreeSpec
  /** Whether it is an options object, which the head of the function destructures. */
  readonly isOptions: boolean
}

const LEAF: TreeSpec = { kind: 'leaf' }

/** Makes the inputs of a trace, parameter by parameter. */
class RootInputs {
  readonly #tracer: TracerBase
  readonly #parameters: readonly Parameter[]
  readonly #concrete: ReadonlyMap<string, unknown>
  /** The parameters of the generated function so far. */
  readonly described: DescribedInput[] = []

  constructor(tracer: TracerBase, parameters: readonly Parameter[], concrete: ReadonlyMap<string, unknown>) {
    this.#tracer = tracer
    this.#parameters = parameters
    this.#concrete = concrete
  }

  /** The values that the program gets for a parameter: one, or any number for `...rest`. */
  of(parameter: Parameter): readonly unknown[] {
    const { name, rest, properties } = parameter
    if (this.#concrete.has(name)) {
      const given = this.#concrete.get(name)
      return rest ? this.#concreteRest(name, given) : [this.#concreteValue(parameter, given)]
    }
    if (parameter.hasHiddenDefault)
      throw new TraceError(
        `the pattern of parameter ${this.#parameters.indexOf(parameter) + 1} contains a default, which would never be used, because a traced value is never undefined`,
        'Give a default to the whole parameter or to a property of an options object, { scale = 2 } = {}, or fix the parameter with concreteArgs.',
      )
    if (rest) return this.#restElements(parameter)
    if (properties !== null) return [this.#optionsObject(name, properties)]
    this.#describe(name)
    return [placeholder(this.#tracer, name, parameter.default)]
  }

  #describe(name: string, spec: TreeSpec = LEAF, isOptions = false): void {
    this.described.push({ name, spec, isOptions })
  }

  /** A nested value in which each leaf is an input or fixed. */
  #concreteValue({ name, default: fallback }: Parameter, given: unknown): unknown {
    const { leaves, spec } = treeFlatten(given)
    this.#describe(name, spec)
    const known = spec.kind === 'leaf' ? fallback : null
    return treeUnflatten(
      leaves.map((leaf, i) => this.#concreteLeaf(name, leaf, i + 1, known)),
      spec,
    )
  }

  /** `{ rest: [PH, 2] }`: one input per value. */
  #concreteRest(name: string, given: unknown): readonly unknown[] {
    if (!isArray(given)) throw new ArgumentError(`concreteArgs: '${name}' is a rest parameter; pass an array of values.`)
    return given.map((value, i) => {
      this.#describe(`${name}_${i + 1}`)
      return this.#concreteLeaf(name, value, i + 1, null)
    })
  }

  /** The input for a leaf. A fixed value has an input too, with an assertion that the program gets that value. */
  #concreteLeaf(name: string, value: unknown, position: number, fallback: KnownValue | null): unknown {
    const input = placeholder(this.#tracer, `${name}_${position}`, fallback)
    if (value instanceof PHBase) {
      if (value instanceof PHWithMeta) copyToMeta(value, input)
      return input
    }
    assertFixed(name, value, input)
    return value
  }

  /** `...rest` without values: one input for all of them, whose elements the program reads. */
  #restElements({ name, elements }: Parameter): readonly unknown[] {
    if (elements === null)
      throw new TraceError(
        `the rest parameter ...${name} has no known length, and the function does more with it than read single elements (${name}[0])`,
        `Tell how many values there are: symbolicTrace(fn, { concreteArgs: { ${name}: [fx.PH, fx.PH] } }).`,
      )
    this.#describe(name)
    const tracer = this.#tracer
    const all = placeholder(tracer, `*${name}`, null)
    return Array.from({ length: elements }, (_, i) => lazyProxy(tracer, () => tracer.createProxy('call_function', operator.getitem, [all, i], {})))
  }

  /** `{ scale = 2, bias }`: an input for each property, like Python's keyword arguments. In concreteArgs a property is named like a parameter. */
  #optionsObject(name: string, properties: readonly Property[]): Readonly<Record<string, unknown>> {
    this.#describe(name, { kind: 'object', keys: properties.map((property) => property.name), children: properties.map(() => LEAF) }, true)
    return Object.fromEntries(properties.map((property) => [property.name, this.#optionValue(property)]))
  }

  #optionValue({ name, default: fallback }: Property): unknown {
    return this.#concrete.has(name) ? this.#concreteLeaf(name, this.#concrete.get(name), 1, fallback) : placeholder(this.#tracer, name, fallback)
  }
}

const isArray = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** Adds a placeholder, with a default if one is known. */
const placeholder = (tracer: TracerBase, name: string, fallback: KnownValue | null): Proxied =>
  tracer.createProxy('placeholder', name, fallback === null ? [] : [fallback.value], {})

/** Records that an input has the value that it was traced for. */
function assertFixed(name: string, value: unknown, input: Proxied): void {
  const message = `${name} has been specialized to have value ${formatArg(value)} but got another value`
  if (value === null || value === undefined) _assertIsNone(input, message)
  else if (['number', 'string', 'boolean', 'bigint'].includes(typeof value)) _assert(operator.eq(input, value), message)
  else
    console.warn(
      `Was not able to add assertion to guarantee correct input ${name} to specialized function. It is up to the user to make sure that your inputs match the inputs you specialized the function with.`,
    )
}

/** Copies the properties of a PH to the meta of the input's node. */
function copyToMeta(from: PHWithMeta, to: Proxied): void {
  for (const [key, value] of Object.entries(from)) if (!isFunction(value) && !key.startsWith('_')) nodeOf(to).meta[key] = value
}
