// The inputs of a trace: placeholders for the parameters of a function, values for those that concreteArgs fixes, and how the generated function takes them (plain
// parameters, nested values, options objects).
import { ArgumentError } from '../../errors/index.ts'
import { isFunction } from '../../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../../pytree/index.ts'
import type { TreeSpec } from '../../pytree/index.ts'
import { _assert, _assertIsNone } from '../values/assertions.ts'
import { formatArg } from '../text/format.ts'
import { operator } from '../graph/operator.ts'
import type { Constant } from './parameterList.ts'
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
  const names: string[] = []
  const specs: TreeSpec[] = []
  const patterns: number[] = []
  const placeholder = (name: string, fallback: Constant = []): Proxied => tracer.createProxy('placeholder', name, fallback, {})
  /** The values of an array of concreteArgs, if the only parameter is `...rest`. */
  const restValues = isArray(concreteArgs) && parameters.length === 1 && parameters[0]?.rest === true ? concreteArgs : null
  const concrete = restValues !== null ? new Map<string, unknown>() : isArray(concreteArgs) ? byPosition(concreteArgs) : byName(concreteArgs)
  const values = restValues === null ? parameters.flatMap((p) => valuesOf(p)) : restInputs(restValues)
  if (specs.every((s) => s.kind === 'leaf')) return { values, finish: (result) => result }
  // The result is flattened only if an input other than an options object is nested.
  const nested = specs.some((s, i) => s.kind !== 'leaf' && !patterns.includes(i))
  const { graph } = tracer
  const info = { origArgs: names, inSpec: { kind: 'array' as const, children: specs }, patterns: patterns }
  graph.setCodegen(new PyTreeCodeGen({ ...info, outSpec: null }))
  const finish = (result: unknown): unknown => {
    if (!nested) return result
    const { leaves, spec } = treeFlatten(result)
    graph.setCodegen(new PyTreeCodeGen({ ...info, outSpec: spec }))
    return leaves
  }
  return { values, finish }

  function byPosition(values: readonly unknown[]): ReadonlyMap<string, unknown> {
    if (values.length !== parameters.length)
      throw new ArgumentError(
        `concreteArgs: Tracing expected ${parameters.length} arguments but got ${values.length} concrete arguments; pass one value for each parameter, and fx.PH for those that stay inputs.`,
      )
    return new Map(parameters.map((p, i) => [p.name, values[i]]))
  }

  function byName(values: Readonly<Record<string, unknown>>): ReadonlyMap<string, unknown> {
    const known = parameters.flatMap((p) => (p.properties === null ? [p.name] : [p.name, ...p.properties.map((q) => q.name)]))
    const unknown = Object.keys(values).find((name) => !known.includes(name))
    if (unknown !== undefined)
      throw new ArgumentError(
        `concreteArgs: the function has no parameter '${unknown}'; its parameters are ${known.join(', ') || 'none'}. Minifiers rename parameters: in minified code pass an array, one value for each.`,
      )
    return new Map(Object.entries(values))
  }

  /** Makes an input for each value, if the only parameter is `...rest`. */
  function restInputs(values: readonly unknown[]): Proxied[] {
    return values.map((value, i) => {
      const input = placeholder(`input_${i}`)
      if (value instanceof PHWithMeta) transferAttributes(value, input)
      return input
    })
  }

  function valuesOf(parameter: Parameter): unknown[] {
    const { name, rest, properties } = parameter
    if (concrete.has(name)) return rest ? concreteRest(parameter) : [concreteValue(parameter, concrete.get(name))]
    if (parameter.hasHiddenDefault)
      throw new TraceError(
        `the pattern of parameter ${parameters.indexOf(parameter) + 1} contains a default, which would never be used, because a traced value is never undefined`,
        'Give a default to the whole parameter or to a property of an options object, { scale = 2 } = {}, or fix the parameter with concreteArgs.',
      )
    if (rest) return restElements(parameter)
    if (properties !== null) return [optionsObject(parameter)]
    describe(name, LEAF)
    return [placeholder(name, parameter.default)]
  }

  function describe(name: string, spec: TreeSpec): void {
    names.push(name)
    specs.push(spec)
  }

  function concreteValue(parameter: Parameter, value: unknown): unknown {
    const { leaves, spec } = treeFlatten(value)
    describe(parameter.name, spec)
    return treeUnflatten(
      leaves.map((leaf, i) => specialize(parameter.name, leaf, i + 1, spec.kind === 'leaf' ? parameter.default : [])),
      spec,
    )
  }

  /** `{ rest: [PH, 2] }`: one input per value. */
  function concreteRest(parameter: Parameter): unknown[] {
    const given = concrete.get(parameter.name)
    if (!isArray(given)) throw new ArgumentError(`concreteArgs: '${parameter.name}' is a rest parameter; pass an array of values.`)
    return given.map((value, i) => {
      describe(`${parameter.name}_${i + 1}`, LEAF)
      return specialize(parameter.name, value, i + 1, [])
    })
  }

  /** Makes the input for a leaf. A fixed value also has an input, and an assertion on it. */
  function specialize(name: string, value: unknown, position: number, fallback: Constant): unknown {
    const input = placeholder(`${name}_${position}`, fallback)
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
  function restElements(parameter: Parameter): unknown[] {
    const { name, elements } = parameter
    if (elements === null)
      throw new TraceError(
        `the rest parameter ...${name} has no known length, and the function does more with it than read single elements (${name}[0])`,
        `Tell how many values there are: symbolicTrace(fn, { concreteArgs: { ${name}: [fx.PH, fx.PH] } }).`,
      )
    describe(name, LEAF)
    const all = placeholder(`*${name}`)
    return Array.from({ length: elements }, (_, i) => lazyProxy(tracer, () => tracer.createProxy('call_function', operator.getitem, [all, i], {})))
  }

  /** `{ scale = 2, bias }`: an input for each property, like Python's keyword arguments. In concreteArgs a property is named like a parameter. */
  function optionsObject(parameter: Parameter): unknown {
    const properties = parameter.properties ?? []
    patterns.push(names.length)
    describe(parameter.name, { kind: 'object', keys: properties.map((p) => p.name), children: properties.map(() => LEAF) })
    const value = (p: Property): unknown =>
      concrete.has(p.name) ? specialize(p.name, concrete.get(p.name), 1, p.default) : placeholder(p.name, p.default)
    return Object.fromEntries(properties.map((p) => [p.name, value(p)]))
  }
}

const isArray = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** Copies the properties of a PH to the meta of the input's node. */
function transferAttributes(from: PHWithMeta, to: Proxied): void {
  for (const [key, value] of Object.entries(from)) if (!isFunction(value) && !key.startsWith('_')) nodeOf(to).meta[key] = value
}
