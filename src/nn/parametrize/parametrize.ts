// Parametrizations: a parameter of a module that is computed from others each time it is read. PyTorch's torch.nn.utils.parametrize.
import { ArgumentError } from '../../errors/index.ts'
import { Module, isLibraryLayer } from '../../module/index.ts'
import {
  checkCallable,
  checkCount,
  checkModule,
  checkOptions,
  checkString,
  isFunction,
  isModule,
  isPromise,
  LEAF_MODULE,
  valueText,
} from '../../protocol/index.ts'
import { Tensor, checkTensor } from '../../tensor/index.ts'
import { ModuleDict } from '../containers.ts'
import { Parameter } from '../parameter.ts'

/** A parametrization that can be turned round: assigning the parameter, and registering it, need that. */
interface Invertible {
  rightInverse(value: Tensor): Tensor | readonly Tensor[]
}

const isInvertible = (module: Module): module is Module & Invertible => 'rightInverse' in module && isFunction(module.rightInverse)

/** The values that were read within {@link cached}; null outside. */
let cache: Map<object, Tensor> | null = null

/**
 * Runs `fn`, in which each parametrized parameter is computed at most once, and returns its result: for networks that use one weight many times. The values are
 * kept until `fn` returns, or its promise is settled, so do not change what is behind them meanwhile. PyTorch's `parametrize.cached`.
 *
 * @throws ArgumentError if `fn` is not a function.
 * @example const [a, b] = nn.utils.parametrize.cached(() => [layer(x), layer(y)])
 */
export function cached<T>(fn: () => T): T {
  checkCount('parametrize.cached', arguments, 1)
  checkCallable('parametrize.cached', 'fn', fn)
  const outer = cache
  cache ??= new Map()
  const end = (): void => {
    cache = outer
  }
  let result: T
  try {
    result = fn()
  } catch (error) {
    end()
    throw error
  }
  if (isPromise(result)) void result.then(end, end)
  else end()
  return result
}

/** The parameters behind a parametrized one, `original` or `original0`, `original1`, …, and the parametrizations, `0`, `1`, …, in order. */
export class ParametrizationList extends Module {
  constructor(parametrization: Module, value: Parameter) {
    checkCount('ParametrizationList', arguments, 2)
    super()
    checkModule('ParametrizationList', 'parametrization', parametrization)
    checkTensor('ParametrizationList', 'value', value)
    const behind = isInvertible(parametrization) ? parametrization.rightInverse(value) : value
    const make = (t: Tensor): Parameter => new Parameter(t.detach().clone(), { requiresGrad: value.requiresGrad })
    if (behind instanceof Tensor) this.registerParameter('original', behind === value ? value : make(behind))
    else behind.forEach((t, i) => this.registerParameter(`original${i}`, make(t)))
    this.addModule('0', parametrization)
  }

  /** Adds a parametrization of what the others give. */
  append(parametrization: Module): void {
    this.addModule(String([...this.children()].length), parametrization)
  }

  /** The value of the parameter. Within {@link cached}, it is computed once. */
  read(): Tensor {
    const known = cache?.get(this)
    if (known !== undefined) return known
    const value = this.forward()
    cache?.set(this, value)
    return value
  }

  /** Computes the value of the parameter. */
  override forward(): Tensor {
    checkCount(this, arguments, 0)
    let values: readonly unknown[] = [...this.ownParameters()].map(([, p]) => p)
    for (const parametrization of this.children()) values = [Reflect.apply(parametrization, undefined, values)]
    const [value] = values
    if (value instanceof Tensor) return value
    throw new ArgumentError(`parametrization: forward must return a Tensor, got ${valueText(value)}.`)
  }

  /** Changes what is behind, so that the parameter has this value. */
  assign(value: Tensor): void {
    cache?.delete(this)
    let behind: Tensor | readonly Tensor[] = value
    for (const parametrization of [...this.children()].toReversed()) {
      if (!isInvertible(parametrization) || !(behind instanceof Tensor))
        throw new ArgumentError(
          `parametrization: ${parametrization.getName()} has no method rightInverse, so a parametrized parameter cannot be assigned.`,
        )
      behind = parametrization.rightInverse(behind)
    }
    const values = behind instanceof Tensor ? [behind] : behind
    ;[...this.ownParameters()].forEach(([, p], i) => {
      const source = values[i]
      if (p instanceof Tensor && source !== undefined) p.copyFrom(source)
    })
  }
}

/**
 * Makes a property of a module one that is computed each time it is read. The module gets a class of its own (`ParametrizedLinear`), so that copies have the
 * property too.
 */
export function computeAttribute(module: Module, name: string, read: (self: Module) => Tensor, write: (self: Module, value: unknown) => void): void {
  const leaf = isLibraryLayer(module)
  const before: object = Object.getPrototypeOf(module)
  const own = Object.hasOwn(before, PARAMETRIZED) ? before : subclassOf(before, leaf)
  Reflect.deleteProperty(module, name)
  Object.setPrototypeOf(module, own)
  Object.defineProperty(own, name, {
    configurable: true,
    enumerable: false,
    get(this: Module) {
      return read(this)
    },
    set(this: Module, value: unknown) {
      write(this, value)
    },
  })
}

const PARAMETRIZED = Symbol('parametrized')

function subclassOf(before: object, leaf: boolean): object {
  const original: { readonly name: string } = before.constructor
  const own: object = Object.create(before)
  // The statics of the class, under another name.
  const named: object = Object.create(original, { name: { value: `Parametrized${original.name}` } })
  Object.defineProperty(own, 'constructor', { value: named, configurable: true, writable: true })
  Object.defineProperty(own, PARAMETRIZED, { value: before })
  Object.defineProperty(own, LEAF_MODULE, { value: leaf })
  return own
}

/** The parameter of a module. Throws ArgumentError if there is none. */
export function parameterOf(where: string, module: Module, name: string): Parameter {
  checkModule(where, 'module', module)
  const value: unknown = Object.hasOwn(module, name) ? Reflect.get(module, name) : null
  if (value instanceof Parameter) return value
  throw new ArgumentError(`${where}: ${module.getName()} has no parameter '${name}'.`)
}

const listOf = (module: Module, name: string): ParametrizationList | null => {
  const lists: unknown = Object.hasOwn(module, 'parametrizations') ? Reflect.get(module, 'parametrizations') : null
  const list: unknown = lists instanceof ModuleDict && lists.has(name) ? lists.get(name) : null
  return list instanceof ParametrizationList ? list : null
}

const required = (module: Module, name: string): ParametrizationList => {
  checkModule('parametrization', 'module', module)
  checkString('parametrization', 'name', name)
  const list = listOf(module, name)
  if (list === null) throw new ArgumentError(`parametrization: '${name}' of ${module.getName()} is not parametrized.`)
  return list
}

/**
 * Makes a parameter of a module the result of a parametrization, a module whose forward computes it from what is trained instead; that is a parameter
 * `parametrizations.<name>.original`, or several if the parametrization has a method `rightInverse` that returns several. Returns the module. Throws ArgumentError if
 * the module has no such parameter. PyTorch's `parametrize.register_parametrization`.
 */
export function registerParametrization<M extends Module>(module: M, name: string, parametrization: Module): M {
  checkCount('registerParametrization', arguments, 3)
  if (!isModule(module) || !isModule(parametrization))
    throw new ArgumentError(
      `registerParametrization: the module and the parametrization must be Modules, got ${valueText(module)} and ${valueText(parametrization)}.`,
    )
  const known = listOf(module, name)
  if (known !== null) {
    known.append(parametrization)
    return module
  }
  const value: unknown = Object.hasOwn(module, name) ? Reflect.get(module, name) : null
  if (!(value instanceof Parameter)) {
    const names = [...module.ownParameters()].map(([own]) => own).join(', ') || 'none'
    throw new ArgumentError(`registerParametrization: ${module.getName()} has no parameter '${name}'; its parameters are ${names}.`)
  }
  const list = new ParametrizationList(parametrization, value)
  const lists: unknown = Object.hasOwn(module, 'parametrizations') ? Reflect.get(module, 'parametrizations') : null
  if (lists instanceof ModuleDict) lists.set(name, list)
  else module.addModule('parametrizations', new ModuleDict({ [name]: list }))
  computeAttribute(
    module,
    name,
    (self) => required(self, name).read(),
    (self, given) => {
      if (!(given instanceof Tensor)) throw new ArgumentError(`parametrization: '${name}' must be assigned a Tensor, got ${valueText(given)}.`)
      required(self, name).assign(given)
    },
  )
  return module
}

/** Whether a parameter of the module, or any, is parametrized. PyTorch's `parametrize.is_parametrized`. */
export function isParametrized(module: Module, name?: string): boolean {
  checkCount('isParametrized', arguments, 2)
  checkModule('isParametrized', 'module', module)
  return name === undefined ? Object.hasOwn(module, 'parametrizations') : listOf(module, name) !== null
}

/** Options of `nn.utils.parametrize.removeParametrizations`. */
export interface RemoveOptions {
  /** Keep the current value of the parameter (the default), or what it was computed from. */
  readonly leaveParametrized?: boolean
}

/**
 * Makes a parametrized parameter an ordinary one; returns the module. PyTorch's `parametrize.remove_parametrizations`.
 *
 * @throws ArgumentError if it is not parametrized, or if `leaveParametrized` is false and it was computed from several.
 * @example nn.utils.parametrize.removeParametrizations(layer, 'weight')
 */
export function removeParametrizations<M extends Module>(module: M, name: string, options: RemoveOptions = {}): M {
  checkCount('removeParametrizations', arguments, 3)
  checkOptions('removeParametrizations', options, { leaveParametrized: 'boolean' })
  const list = required(module, name)
  const [first, ...others] = [...list.ownParameters()].map(([, parameter]) => parameter)
  const original = options.leaveParametrized === false ? first : null
  if (original !== null && (!(original instanceof Tensor) || others.length > 0))
    throw new ArgumentError(
      `removeParametrizations: '${name}' is computed from ${others.length + 1} parameters, so none of them can take its place; leave out leaveParametrized: false.`,
    )
  const value = original ?? list.forward()
  const lists: unknown = Reflect.get(module, 'parametrizations')
  if (lists instanceof ModuleDict) {
    lists.delete(name)
    if (lists.size === 0) {
      Reflect.deleteProperty(module, 'parametrizations')
      const own: object = Object.getPrototypeOf(module)
      const before: unknown = Reflect.get(own, PARAMETRIZED)
      if (typeof before === 'object' && before !== null) Object.setPrototypeOf(module, before)
    }
  }
  const parameter = original ?? new Parameter(value.detach().clone())
  Object.defineProperty(module, name, { value: parameter, writable: true, enumerable: true, configurable: true })
  return module
}
