// ParameterList and ParameterDict: parameters in an array or by name, so that they are registered.
import { ArgumentError } from '../errors/index.ts'
import { Module, getAttribute, ownEntries } from '../module/index.ts'
import { checkArgument, checkCount, checkIterable, checkMethod, checkString, isObject, isTensorLike, valueText } from '../protocol/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'
import { Parameter } from './parameter.ts'

/** A parameter, or a tensor that becomes one. */
function parameterFrom(where: string, value: unknown): Parameter {
  if (value instanceof Parameter) return value
  if (value instanceof Tensor) return new Parameter(value)
  throw new ArgumentError(`${where}: expected a Parameter or a Tensor, got ${valueText(value)}.`)
}

/** The names of what a container holds: parameters, and what takes their places, as values of functionalCall and whole parameters of a sharded module do. */
const namesIn = (module: Module): string[] =>
  ownEntries(module).flatMap(([name, value]) => (isTensorLike(value) && !module.hasBuffer(name) ? [name] : []))

/** What is held under a name; a trace records the read. */
const held = (module: Module, name: string): Parameter => getAttribute(module, name) as Parameter

const describe = (module: Module): string => {
  const lines = [...module.ownParameters()].map(
    ([name, p]) => `  (${name}): Parameter containing: [${String(Reflect.get(p, 'dtype'))} of size ${formatShape(p.shape)}]`,
  )
  return lines.length === 0 ? `${module.getName()}()` : `${module.getName()}(\n${lines.join('\n')}\n)`
}

/** Parameters in an array: `this.scales = new nn.ParameterList([a, b])`. Tensors become parameters. PyTorch's `nn.ParameterList`. */
export class ParameterList extends Module {
  constructor(parameters: Iterable<Tensor> = []) {
    checkCount('nn.ParameterList', arguments, 1)
    super()
    this.extend(parameters)
  }

  /** Number of parameters. */
  override get length(): number {
    return namesIn(this).length
  }

  /** The parameter at a position; negative counts from the end. Throws ArgumentError out of range. */
  at(index: number): Parameter {
    checkMethod(this, 'at', arguments, 1)
    const found = Number.isInteger(index) ? namesIn(this).at(index) : undefined
    if (found === undefined)
      throw new ArgumentError(`nn.ParameterList.at: index ${valueText(index)} is out of range for ${this.length} parameter(s).`)
    return held(this, found)
  }

  /** Adds a parameter at the end; returns this. */
  append(parameter: Tensor): this {
    checkMethod(this, 'append', arguments, 1)
    this.registerParameter(String(this.length), parameterFrom('nn.ParameterList.append', parameter))
    return this
  }

  /** Adds parameters at the end; returns this. */
  extend(parameters: Iterable<Tensor>): this {
    checkMethod(this, 'extend', arguments, 1)
    checkIterable('nn.ParameterList', 'parameters', parameters)
    for (const parameter of parameters) this.append(parameter)
    return this
  }

  *[Symbol.iterator](): IterableIterator<Parameter> {
    for (const name of namesIn(this)) yield held(this, name)
  }

  override forward(): never {
    throw new ArgumentError('nn.ParameterList has no forward: use its parameters, `this.scales.at(0)`.')
  }

  override toString(): string {
    return describe(this)
  }
}

/** Parameters by name. Tensors become parameters. A name must not be that of one of its methods. PyTorch's `nn.ParameterDict`. */
export class ParameterDict extends Module {
  constructor(parameters: Readonly<Record<string, Tensor>> | ReadonlyMap<string, Tensor> = {}) {
    checkCount('nn.ParameterDict', arguments, 1)
    super()
    checkArgument(isObject(parameters), 'nn.ParameterDict', 'parameters', 'an object or a Map of Tensors by name', parameters)
    const entries: Iterable<readonly [string, Tensor]> = parameters instanceof Map ? parameters : Object.entries(parameters)
    for (const [name, parameter] of entries) this.set(name, parameter)
  }

  /** Number of parameters. */
  get size(): number {
    return namesIn(this).length
  }

  has(name: string): boolean {
    checkMethod(this, 'has', arguments, 1)
    return namesIn(this).includes(name)
  }

  /** The parameter of that name. Throws ArgumentError listing the names when there is none. */
  get(name: string): Parameter {
    checkMethod(this, 'get', arguments, 1)
    if (this.has(name)) return held(this, name)
    throw new ArgumentError(`nn.ParameterDict.get: there is no parameter ${valueText(name)}. The parameters are ${[...this.keys()].join(', ')}.`)
  }

  /** Adds or replaces a parameter; returns this. Throws ArgumentError for a name that a property of the dictionary has. */
  set(name: string, parameter: Tensor): this {
    checkMethod(this, 'nn.ParameterDict.set', arguments, 2)
    checkString('nn.ParameterDict.set', 'name', name)
    if (name in this && !this.has(name))
      throw new ArgumentError(`nn.ParameterDict.set: the name '${name}' is taken by a property of ParameterDict; choose another one.`)
    this.registerParameter(name, parameterFrom('nn.ParameterDict.set', parameter))
    return this
  }

  *keys(): Generator<string> {
    yield* namesIn(this)
  }

  *entries(): Generator<[string, Parameter]> {
    for (const name of namesIn(this)) yield [name, held(this, name)]
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.keys()
  }

  override forward(): never {
    throw new ArgumentError('nn.ParameterDict has no forward: use its parameters, `this.scales.get(name)`.')
  }

  override toString(): string {
    return describe(this)
  }
}
