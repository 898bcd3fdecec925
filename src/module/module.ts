// Module: a tree of children, parameters and buffers by name, with hooks, train/eval and state dict. It knows no operators, so that a GraphModule can be a Module
// while fx does not depend on tensors. Children and parameters are ordinary properties: `this.fc = new Linear(4, 5)`. A module is called like a function.
import { ArgumentError } from '../errors/index.ts'
import {
  LEAF_MODULE,
  MODULE,
  STANDS_FOR,
  attributeName,
  checkArgument,
  checkCallable,
  checkMethod,
  checkModule,
  checkOptions,
  checkString,
  childPath,
  explainPromise,
  inspectAs,
  isParameter,
  isPromise,
  isTensorLike,
  uncalledHint,
  valueText,
} from '../protocol/index.ts'
import type { ModuleParameter, ModuleTensor, TensorLike } from '../protocol/index.ts'
import { ownAttribute, readBuffer, readParameter, setAttribute, splitPath } from './attributes.ts'
import { CallableObject } from './callable.ts'
import { cloneModule } from './clone.ts'
import { copyTensor } from './copyTensor.ts'
import { libraryLayer } from './libraryLayer.ts'
import { addHook, buffersOf, internalsOf, knownBuffers } from './internals.ts'
import type { RemovableHandle } from './internals.ts'
import { hookedState, listedOnce, loadState } from './stateDict.ts'
import type { LoadStateResult } from './stateDict.ts'
import { checkReplaced } from './replaced.ts'
import { warnOfArrays } from './unregistered.ts'

/** Called before forward. A returned array replaces the arguments. */
export type ForwardPreHook = (module: Module, args: readonly unknown[]) => readonly unknown[] | void
/** Called after forward. A returned value, unless undefined, replaces the output. */
export type ForwardHook = (module: Module, args: readonly unknown[], output: unknown) => unknown

/** Intercepts module calls for a tracer; see {@link setModuleTracingHook}. */
export interface ModuleTracingHook {
  callModule(module: Module, forward: (...args: readonly unknown[]) => unknown, args: readonly unknown[]): unknown
}

/** Sees module calls that no tracer intercepts; see {@link setModuleCallHook}. */
export interface ModuleCallHook {
  /** Returns what `forward` does. */
  callModule(module: Module, forward: () => unknown): unknown
}

let tracing: ModuleTracingHook | null = null
let watching: ModuleCallHook | null = null
/** Who gets the calls: the tracer, or else the one who watches. */
let interceptor: ModuleTracingHook | null = null

/** Sets the hook that handles every module call, or null for none, and returns the previous one. For tracers. */
export function setModuleTracingHook(hook: ModuleTracingHook | null): ModuleTracingHook | null {
  const before = tracing
  tracing = hook
  setInterceptor()
  return before
}

/** Sets the hook that sees module calls while nothing is traced, or null for none, and returns the previous one. For reports: it must call `forward` once, and return its result. */
export function setModuleCallHook(hook: ModuleCallHook | null): ModuleCallHook | null {
  const before = watching
  watching = hook
  setInterceptor()
  return before
}

function setInterceptor(): void {
  const hook = watching
  interceptor = tracing ?? (hook === null ? null : { callModule: (module, forward, args) => hook.callModule(module, () => forward(...args)) })
}

/** Runs a module's forward, with its hooks if it has any. */
function forwardOf(module: Module, given: readonly unknown[]): unknown {
  let args: readonly unknown[] = given
  // One look-up for each call.
  const { held, hooks } = internalsOf(module)
  if (held === null && tracing === null) checkReplaced(module)
  if (hooks.size > 0) for (const hook of hooks.get('forwardPre') ?? []) args = Reflect.apply(hook, undefined, [module, args]) ?? args
  let output: unknown = Reflect.apply(module.forward, module, args)
  if (hooks.size > 0) {
    for (const hook of hooks.get('forward') ?? []) {
      const replaced: unknown = Reflect.apply(hook, undefined, [module, args, output])
      if (replaced !== undefined) output = replaced
    }
  }
  return isPromise(output) ? explainPromise(output, `${module.constructor.name}.forward`, args) : output
}

/**
 * The base class of all layers and models; PyTorch's torch.nn.Module. Subclasses define `forward`; users call the module: `model(x)`. Its typeof is 'function', but
 * it has no properties except its own.
 *
 * @example
 * class Net extends nn.Module {
 *   fc = new nn.Linear(4, 2)
 *   forward(x: Tensor): Tensor {
 *     return torch.relu(this.fc(x))
 *   }
 * }
 * const y = new Net()(torch.randn([3, 4]))
 */
export abstract class Module extends CallableObject {
  declare readonly [MODULE]: true
  /** Whether layers such as dropout run in training mode. Set it with `train()` and `eval()`. */
  training = true

  /** Computes the module's output. */
  abstract forward(...args: never[]): unknown

  /** The same as calling the module: runs the hooks and forward. `model.call(x)` is `model(x)`. */
  call(...args: Parameters<this['forward']>): ReturnType<this['forward']> {
    if (this === undefined) checkMethod(this, 'call', args, 0)
    const output = interceptor === null ? forwardOf(this, args) : interceptor.callModule(this, (...given) => forwardOf(this, given), args)
    return output as ReturnType<this['forward']>
  }

  /** Registers a hook that runs before forward. */
  registerForwardPreHook(hook: ForwardPreHook): RemovableHandle {
    checkMethod(this, 'registerForwardPreHook', arguments, 1)
    return addHook(this, 'forwardPre', hook)
  }

  /** Registers a hook that runs after forward. */
  registerForwardHook(hook: ForwardHook): RemovableHandle {
    checkMethod(this, 'registerForwardHook', arguments, 1)
    return addHook(this, 'forward', hook)
  }

  /**
   * Adds a tensor that is part of the module's state but not trained. `persistent: false` keeps it out of the state dict. Throws ArgumentError if it is neither a tensor nor
   * null.
   */
  registerBuffer(name: string, tensor: TensorLike | null, options: { readonly persistent?: boolean } = {}): void {
    checkMethod(this, 'registerBuffer', arguments, 3)
    checkOptions('registerBuffer', options, { persistent: 'boolean' })
    checkName('registerBuffer', name, this)
    if (tensor !== null && !isTensorLike(tensor))
      throw new ArgumentError(`registerBuffer: '${name}' must be a Tensor or null, got ${valueText(tensor)}.${uncalledHint(tensor)}`)
    checkFree('registerBuffer', this, name, this.hasBuffer(name))
    setAttribute(this, name, tensor)
    buffersOf(this).set(name, options.persistent ?? true)
  }

  /** Adds a parameter whose name is only known at run time. Otherwise, assign a property. Throws ArgumentError if it is neither a parameter nor null. */
  registerParameter(name: string, parameter: TensorLike | null): void {
    checkMethod(this, 'registerParameter', arguments, 2)
    checkName('registerParameter', name, this)
    if (parameter !== null && !isParameter(parameter))
      throw new ArgumentError(
        `registerParameter: '${name}' must be a Parameter or null, got ${valueText(parameter)}.${isTensorLike(parameter) ? ' Make one: new nn.Parameter(tensor).' : uncalledHint(parameter)}`,
      )
    checkFree('registerParameter', this, name, isParameter(peek(this, name)))
    setAttribute(this, name, parameter)
  }

  /** Adds a child whose name is only known at run time. Otherwise, assign a property. PyTorch's add_module. */
  addModule(name: string, module: Module): void {
    checkMethod(this, 'addModule', arguments, 2)
    checkName('addModule', name, this)
    checkModule('addModule', name, module)
    checkFree('addModule', this, name, peek(this, name) instanceof Module)
    setAttribute(this, name, module)
  }

  /** Direct children by name. */
  *namedChildren(): Generator<[string, Module]> {
    checkMethod(this, 'namedChildren', arguments, 0)
    for (const [name, value] of ownEntries(this)) if (value instanceof Module) yield [name, value]
  }

  children(): Generator<Module> {
    checkMethod(this, 'children', arguments, 0)
    return secondOf(this.namedChildren())
  }

  /** This module and all modules below it, each once, with dotted paths ('' for this module). */
  *namedModules(prefix = '', seen: Set<Module> = new Set()): Generator<[string, Module]> {
    checkMethod(this, 'namedModules', arguments, 2)
    checkString('namedModules', 'prefix', prefix)
    checkArgument(seen instanceof Set, 'namedModules', 'seen', 'a Set of modules', seen)
    if (seen.has(this)) return
    const isRoot = seen.size === 0
    seen.add(this)
    yield [prefix, this]
    for (const [name, child] of this.namedChildren()) yield* child.namedModules(childPath(prefix, name), seen)
    // Not during a trace, in which reading a property may be recorded.
    if (!isRoot || tracing !== null) return
    for (const module of seen) checkReplaced(module)
    warnOfArrays(seen)
  }

  modules(): Generator<Module> {
    checkMethod(this, 'modules', arguments, 0)
    return secondOf(this.namedModules())
  }

  /** The module's own parameters, without those of children. */
  *ownParameters(): Generator<[string, ModuleParameter]> {
    for (const [name, value] of ownEntries(this)) if (isParameter(value)) yield [name, readParameter(this, name)]
  }

  /** Whether the module itself has a buffer of that name. */
  hasBuffer(name: string): boolean {
    checkMethod(this, 'hasBuffer', arguments, 1)
    return knownBuffers(this)?.has(name) === true
  }

  /** The module's own buffers, without those of children, and whether they are persistent. */
  *ownBuffers(): Generator<[string, ModuleTensor, boolean]> {
    for (const [name, persistent] of knownBuffers(this) ?? []) {
      if (isTensorLike(peek(this, name))) yield [name, readBuffer(this, name), persistent]
    }
  }

  /**
   * All parameters with dotted names, which start with `prefix`; without `recurse` the module's own ones only. A shared parameter is listed once, under its first name. PyTorch's
   * named_parameters.
   */
  namedParameters(prefix = '', recurse = true): Generator<[string, ModuleParameter]> {
    checkListing(this, 'namedParameters', arguments, prefix, recurse)
    return listedOnce(this, (module) => module.ownParameters(), prefix, recurse)
  }

  /** All parameters, each once; without `recurse` the module's own ones only. */
  parameters(recurse = true): Generator<ModuleParameter> {
    checkMethod(this, 'parameters', arguments, 1)
    checkRecurse('parameters', recurse)
    return secondOf(this.namedParameters('', recurse))
  }

  /** All buffers with dotted names, as {@link namedParameters} lists parameters. PyTorch's named_buffers. */
  namedBuffers(prefix = '', recurse = true): Generator<[string, ModuleTensor]> {
    checkListing(this, 'namedBuffers', arguments, prefix, recurse)
    return listedOnce(this, (module) => module.ownBuffers(), prefix, recurse)
  }

  /** All buffers, each once; without `recurse` the module's own ones only. */
  buffers(recurse = true): Generator<ModuleTensor> {
    checkMethod(this, 'buffers', arguments, 1)
    checkRecurse('buffers', recurse)
    return secondOf(this.namedBuffers('', recurse))
  }

  /** The module at a dotted path. Throws ArgumentError, which names the first part that is missing. */
  getSubmodule(path: string): Module {
    checkMethod(this, 'getSubmodule', arguments, 1)
    checkString('getSubmodule', 'path', path)
    if (path === '') return this
    let module: Module = this
    for (const part of path.split('.')) {
      const next = ownAttribute(module, part)
      if (!(next instanceof Module))
        throw new ArgumentError(`getSubmodule: ${module.constructor.name} has no child '${part}' (looking for '${path}').`)
      module = next
    }
    return module
  }

  /** The parameter at a dotted path. Throws ArgumentError if there is none. */
  getParameter(path: string): ModuleParameter {
    checkMethod(this, 'getParameter', arguments, 1)
    const [owner, name] = placeOf(this, path)
    if (!isParameter(peek(owner, name))) throw new ArgumentError(`getParameter: '${path}' is not a parameter of ${this.constructor.name}.`)
    return readParameter(owner, name)
  }

  /** The buffer at a dotted path. Throws ArgumentError if there is none. */
  getBuffer(path: string): ModuleTensor {
    checkMethod(this, 'getBuffer', arguments, 1)
    const [owner, name] = placeOf(this, path)
    const value = peek(owner, name)
    if (!isTensorLike(value) || value.isParameter) throw new ArgumentError(`getBuffer: '${path}' is not a buffer of ${this.constructor.name}.`)
    return readBuffer(owner, name)
  }

  /** Sets the training mode of this module and all modules below it. */
  train(mode = true): this {
    checkMethod(this, 'train', arguments, 1)
    checkArgument(typeof mode === 'boolean', 'train', 'mode', 'true or false', mode)
    for (const module of this.modules()) module.training = mode
    return this
  }

  /** Leaves training mode: `train(false)`. */
  eval(): this {
    checkMethod(this, 'eval', arguments, 0)
    return this.train(false)
  }

  /** Sets `requiresGrad` of all parameters. */
  requiresGrad_(value = true): this {
    checkMethod(this, 'requiresGrad_', arguments, 1)
    checkArgument(typeof value === 'boolean', 'requiresGrad_', 'value', 'true or false', value)
    for (const parameter of this.parameters()) parameter.requiresGrad = value
    return this
  }

  /** Removes the gradients of all parameters. */
  zeroGrad(): void {
    checkMethod(this, 'zeroGrad', arguments, 0)
    for (const parameter of this.parameters()) parameter.grad = null
  }

  /** Calls `fn` with every module, children first. */
  apply(fn: (module: Module) => void): this {
    checkMethod(this, 'apply', arguments, 1)
    checkCallable('apply', 'fn', fn)
    for (const child of this.children()) child.apply(fn)
    fn(this)
    return this
  }

  /**
   * The parameters and persistent buffers by dotted name. They are not copied. With `names: 'pytorch'`, the names are PyTorch's: `running_mean` for
   * `runningMean`, so that PyTorch loads a file of them. Names that are not in camel case (`LayerNorm`, `A_log`) stay as they are. Throws ArgumentError for other `names`.
   */
  stateDict(options: { readonly names?: 'pytorch' | 'own' } = {}): Map<string, TensorLike> {
    checkMethod(this, 'stateDict', arguments, 1)
    checkOptions('stateDict', options, { names: true })
    const { names = 'own' } = options
    if (names !== 'own' && names !== 'pytorch')
      throw new ArgumentError(`stateDict: option 'names' must be 'own' or 'pytorch', got ${valueText(names)}.`)
    const state = hookedState(this)
    return names === 'pytorch' ? new Map([...state].map(([path, value]) => [torchPath(path), value])) : state
  }

  /**
   * Copies values into this module's parameters and buffers, and returns the names without a match (none, unless `strict` is false). Names may be spelled as in
   * PyTorch: `running_mean` is `runningMean`. Throws LoadStateError, before copying anything, for missing and unexpected names (unless `strict` is false) and for
   * shapes that differ.
   */
  loadStateDict(
    state: ReadonlyMap<string, TensorLike> | Readonly<Record<string, TensorLike>>,
    options: { readonly strict?: boolean } = {},
  ): LoadStateResult {
    checkMethod(this, 'loadStateDict', arguments, 2)
    checkOptions('loadStateDict', options, { strict: 'boolean' })
    return loadState(this, state, options.strict ?? true)
  }

  /**
   * A copy with its own submodules, parameters and buffers; with `shareTensors`, parameters and buffers are shared. What the module shares within itself, such as a
   * parameter that two layers use, is shared within the copy. Hooks are kept. The copy is made without calling the constructor, so a class with private fields
   * (`#x`) has to override `cloneWith`. PyTorch's copy.deepcopy.
   */
  deepCopy(options: { readonly shareTensors?: boolean } = {}): this {
    checkMethod(this, 'Module.deepCopy', arguments, 1)
    checkOptions('Module.deepCopy', options, { shareTensors: 'boolean' })
    return cloneModule(this, options.shareTensors === true ? (tensor) => tensor : copyTensor)
  }

  /** The own properties, for JSON.stringify, which leaves out functions. */
  toJSON(): Record<string, unknown> {
    return Object.fromEntries(Object.entries(this))
  }

  /** The text in the parentheses of `toString`. Layers override it. */
  extraRepr(): string {
    return ''
  }

  /** The class name that `toString` shows. PyTorch's _get_name. */
  getName(): string {
    return this.constructor.name
  }

  override toString(): string {
    const extra = this.extraRepr()
    const children = [...this.namedChildren()].map(([name, child]) => `(${name}): ${String(child).replaceAll('\n', '\n  ')}`)
    const name = this.getName()
    if (children.length === 0) return `${name}(${extra})`
    return `${name}(\n  ${[...(extra === '' ? [] : [extra]), ...children].join('\n  ')}\n)`
  }
}

// Calling a module is `call`; CallableObject makes it possible.
export interface Module {
  (...args: Parameters<this['forward']>): ReturnType<this['forward']>
}

Object.defineProperty(Module.prototype, MODULE, { value: true })
Object.defineProperty(Module.prototype, LEAF_MODULE, libraryLayer)
inspectAs(Module.prototype, String)

/** PyTorch's spelling of a dotted path: the parts in camel case as PyTorch's layers would spell them, the others as the program does. */
const torchPath = (path: string): string =>
  path
    .split('.')
    .map((name) => (/^[a-z][a-zA-Z0-9]*$/.test(name) ? attributeName(name) : name))
    .join('.')

/** The module that owns the attribute at a dotted path, and the attribute's name. */
function placeOf(module: Module, path: string): [Module, string] {
  const [owner, name] = splitPath(path)
  return [module.getSubmodule(owner), name]
}

/** Throws ArgumentError for a name that no attribute can have: a member of the module's class, `forward`, `toString` and `__proto__` among them, would be hidden by it. */
const checkName = (where: string, name: string, module: Module): void =>
  checkArgument(
    typeof name === 'string' && /^[^.]+$/.test(name) && !(name in Object.getPrototypeOf(module)),
    where,
    'name',
    'a name without dots that no Module has already',
    name,
  )

/** Throws ArgumentError if the module has something else at that name than the method registers (`known`). */
function checkFree(where: string, module: Module, name: string, known: boolean): void {
  // What an accessor of that name gives is not the module's own.
  const value: unknown = known ? null : Object.getOwnPropertyDescriptor(module, name)?.value
  if (value !== null && value !== undefined)
    throw new ArgumentError(
      `${where}: the module has '${name}' already, ${valueText(value)}. Choose another name, or set module.${name} to null first.`,
    )
}

/** Checks the arguments of a method that lists tensors by name. */
function checkListing(self: unknown, where: string, given: ArrayLike<unknown>, prefix: string, recurse: boolean): void {
  checkMethod(self, where, given, 2)
  checkString(where, 'prefix', prefix)
  checkRecurse(where, recurse)
}

const checkRecurse = (where: string, recurse: boolean): void =>
  checkArgument(typeof recurse === 'boolean', where, 'recurse', 'true or false', recurse)

function* secondOf<T>(pairs: Iterable<readonly [string, T]>): Generator<T> {
  for (const [, value] of pairs) yield value
}

/** The value of a property, without notifying a tracer that intercepts the reads of tensors. */
function peek(module: Module, name: string): unknown {
  if (tracing === null) return ownAttribute(module, name)
  const descriptor = Object.getOwnPropertyDescriptor(module, name)
  return descriptor?.get === undefined ? descriptor?.value : Reflect.get(descriptor.get, STANDS_FOR)
}

/** The module's own properties, in order, as they are: a tracer does not hear of it. */
export function ownEntries(module: Module): [string, unknown][] {
  if (tracing === null) return Object.entries(module)
  return Object.keys(module).map((name) => [name, peek(module, name)])
}
