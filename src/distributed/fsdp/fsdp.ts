// FullyShardedDataParallel: every rank trains on a part of the batch, and stores only a part of the parameters, gradients and optimizer states.
import { ArgumentError } from '../../errors/index.ts'
import { Module, setAttribute } from '../../module/index.ts'
import type { LoadStateResult } from '../../module/index.ts'
import { checkCallable, checkCount, checkMethod, isModule, isParameter, isTensorLike, valueText } from '../../protocol/index.ts'
import type { TensorLike } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { broadcastState } from '../broadcastState.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { clipGradNorm } from './clip.ts'
import type { ClipOptions } from './clip.ts'
import { FlatHandle } from './handle.ts'
import { WRAPPED } from './names.ts'
import { readOptions } from './options.ts'
import type { FsdpOptions } from './options.ts'
import { collectParameters } from './parameters.ts'
import type { UnitParameters } from './parameters.ts'
import { afterGradient, makeRoot, runForward } from './runtime.ts'
import { loadUnitState, unitState } from './stateDict.ts'
import { summonFullParams } from './summon.ts'
import { DEFAULT_STATE_DICT, registerUnit, unitOf, unitOrNone, unitsIn } from './unit.ts'
import type { Unit } from './unit.ts'
import { wrapTargets } from './wrapPolicies.ts'
import type { Ignored, WrapTarget } from './wrapPolicies.ts'

const WHERE = 'FullyShardedDataParallel'

/** Everything below the given modules; and the parameters that are ignored. */
function readIgnored({ ignoredModules, ignoredStates }: FsdpOptions): Ignored {
  if (ignoredModules !== undefined && ignoredStates !== undefined)
    throw new ArgumentError('Cannot pass both ignored_modules and ignored_states at the same time. Please just pass ignored_states.')
  const modules = new Set<unknown>()
  const parameters = new Set<unknown>()
  for (const item of [...(ignoredModules ?? []), ...(ignoredStates ?? [])]) {
    if (item instanceof Module) {
      for (const module of item.modules()) {
        modules.add(module)
        for (const [, parameter] of module.ownParameters()) parameters.add(parameter)
      }
    } else if (ignoredModules === undefined && isParameter(item)) parameters.add(item)
    else
      throw new ArgumentError(
        ignoredModules === undefined
          ? `${WHERE}: ignoredStates must be Parameters or Modules, got ${valueText(item)}.`
          : `ignored_modules expects nn.Module list elements but got types [${valueText(item)}]`,
      )
  }
  return { modules, parameters }
}

/** Gives modules with fake parameters real ones. */
function materialize(module: Module, init: FsdpOptions['paramInitFn']): void {
  for (const part of module.modules()) {
    if (unitOrNone(part) !== undefined) continue
    const isFake = (): boolean => [...part.ownParameters()].some(([, parameter]) => parameter instanceof Tensor && parameter.isFake)
    if (!isFake()) continue
    init?.(part)
    if (isFake())
      throw new ArgumentError(
        `${WHERE}: ${part.getName()} has fake parameters (shapes without data)${init === undefined ? '. Pass paramInitFn, which gives it real ones.' : ' after paramInitFn; it must assign real ones.'}`,
      )
  }
}

/** The options of a unit: the model's, with what the policy says in their place. Ranks that it names take the place of the model's in either form. */
function unitOptions(options: FsdpOptions, own: WrapTarget['options']): FsdpOptions {
  if (own.processGroup === undefined && own.deviceMesh === undefined) return { ...options, ...own }
  const { processGroup: _group, deviceMesh: _mesh, ...others } = options
  return { ...others, ...own }
}

/** Replaces the targets by wrappers, children first. */
function wrapChildren(module: Module, targets: ReadonlyMap<Module, WrapTarget>, options: FsdpOptions, seen: Set<Module>): void {
  if (seen.has(module)) return
  seen.add(module)
  for (const [name, child] of module.namedChildren()) {
    wrapChildren(child, targets, options, seen)
    const target = targets.get(child)
    if (target !== undefined) setAttribute(module, name, new FullyShardedDataParallel(child, unitOptions(options, target.options)))
  }
}

const isBatchNorm = (module: Module): boolean => module.getName().startsWith('BatchNorm')

/** Applies the policy. Batch norms compute in full precision, so under mixed precision they are units of their own. */
function autoWrap(module: Module, options: FsdpOptions, ignored: Ignored): void {
  const { autoWrapPolicy, mixedPrecision } = options
  if (autoWrapPolicy === undefined || autoWrapPolicy === null) return
  for (const [path, part] of module.namedModules())
    if (unitOrNone(part) !== undefined)
      throw new ArgumentError(
        `FSDP auto wrapping requires modules to not already have FSDP applied but found ${path} in\n${String(module)}\nWrap by hand or by a policy, not both.`,
      )
  const targets = new Map(wrapTargets(module, autoWrapPolicy, ignored).map((target) => [target.module, target]))
  if (mixedPrecision?.paramDtype !== undefined && mixedPrecision.paramDtype !== null)
    for (const part of module.modules())
      if (isBatchNorm(part) && part !== module && !ignored.modules.has(part))
        targets.set(part, { module: part, options: { mixedPrecision: { castForwardInputs: true } } })
  const { autoWrapPolicy: _policy, ignoredModules: _modules, ignoredStates: _states, ...rest } = options
  wrapChildren(module, targets, { ...rest, ignoredStates: [...ignored.modules, ...ignored.parameters].filter(isIgnorable) }, new Set())
}

const isIgnorable = (value: unknown): value is Module | TensorLike => value instanceof Module || isParameter(value)

/** Lets `wrapper.fc` mean the wrapped module's `fc`. As in PyTorch, the wrapper may have another value of its own, but no tensor or module of that name. */
function fallThrough(wrapper: Module, inner: Module): void {
  for (const name of Object.keys(inner)) {
    if (name in wrapper) continue
    Object.defineProperty(wrapper, name, {
      configurable: true,
      enumerable: false,
      get: () => Reflect.get(inner, name),
      set(value: unknown) {
        if (value === null || isTensorLike(value) || isModule(value))
          throw new ArgumentError(
            `${WHERE}: attribute '${name}' already exists in the wrapped module, got ${valueText(value)} for it. Use another name, or set it there: fsdp.module.${name}.`,
          )
        Object.defineProperty(wrapper, name, { value, configurable: true, enumerable: true, writable: true })
      },
    })
  }
}

/** The parameters of a unit, before they are divided. */
function ownParameters(inner: Module, ignored: Ignored): UnitParameters {
  const isOutside = (module: Module): boolean => unitOrNone(module) !== undefined || (module !== inner && ignored.modules.has(module))
  return collectParameters(inner, isOutside, ignored.parameters)
}

/**
 * Divides the parameters of `module` among the ranks. A unit (a wrapper, and each submodule that the policy wraps) gathers its parameters when it computes, and
 * frees them afterwards; its gradients are averaged over the ranks, each of which keeps its part. Make the optimizer after wrapping. PyTorch's
 * `FullyShardedDataParallel`.
 *
 * @throws ArgumentError for options that do not fit, and for parameters that cannot be one vector: of several dtypes, of no dimensions, or shared with another unit.
 * @example
 * const model = new FullyShardedDataParallel(new Net(), { autoWrapPolicy: new ModuleWrapPolicy([Block]) })
 * const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-3 })
 * loss(model(x), y).backward() // x, y: this rank's part of the batch
 * model.clipGradNorm_(1)
 * optimizer.step()
 */
export class FullyShardedDataParallel<M extends Module = Module> extends Module {
  readonly [WRAPPED]: M

  constructor(module: M, options: FsdpOptions = {}) {
    checkCount('FSDP', arguments, 2)
    super()
    if (!isModule(module)) throw new ArgumentError(`${WHERE}: module must be a Module, got ${valueText(module)}.`)
    const settings = readOptions(options)
    const ignored = readIgnored(options)
    autoWrap(module, options, ignored)
    materialize(module, options.paramInitFn)
    const parameters = ownParameters(module, ignored)
    // Those of units below are divided already, and were sent when these were made.
    if (options.syncModuleStates === true)
      for (const group of [settings.shardGroup, settings.replicas])
        if (group !== null) broadcastState([...parameters.tensors, ...module.buffers()], group)
    this[WRAPPED] = module
    const handle = parameters.tensors.length === 0 ? null : new FlatHandle(module, parameters, settings, afterGradient)
    registerUnit(this, {
      wrapper: this,
      inner: module,
      handle,
      settings,
      isRoot: null,
      root: null,
      sync: true,
      stateDictType: DEFAULT_STATE_DICT,
    })
    fallThrough(this, module)
  }

  /** The wrapped module. */
  get module(): M {
    return this[WRAPPED]
  }

  /** Gathers the parameters, calls the module, and frees them. */
  override forward(...args: Parameters<M['forward']>): ReturnType<M['forward']> {
    const inner = this[WRAPPED]
    return runForward(unitOf(this), args, (given): ReturnType<M['forward']> => Reflect.apply(inner.call, inner, given))
  }

  /** Calls `fn` with every module, children first; parameters are whole meanwhile, and keep what `fn` writes. */
  override apply(fn: (module: Module) => void): this {
    summonFullParams(this, () => super.apply(fn))
    return this
  }

  /** The state dict of the type in force, see {@link stateDictType}. Without names of wrappers. */
  override stateDict(): Map<string, TensorLike> {
    checkMethod(this, 'stateDict', arguments, 0)
    return unitState(unitOf(this))
  }

  /** Loads a state dict of the type in force. */
  override loadStateDict(
    state: ReadonlyMap<string, TensorLike> | Readonly<Record<string, TensorLike>>,
    options: { readonly strict?: boolean } = {},
  ): LoadStateResult {
    checkMethod(this, 'loadStateDict', arguments, 2)
    return loadUnitState(unitOf(this), state, options)
  }

  /**
   * Scales all gradients so that their norm over all ranks is at most `maxNorm`. Returns the norm before. For the outermost module only. PyTorch's
   * `clip_grad_norm_`.
   */
  clipGradNorm_(maxNorm: number, options: ClipOptions = {}): Tensor {
    checkMethod(this, 'clipGradNorm_', arguments, 2)
    const unit = unitOf(this)
    makeRoot(unit)
    return clipGradNorm(unit, maxNorm, options)
  }

  /** Runs `fn`; backward in it adds to this rank's gradients, whole, and sends nothing. The next backward outside reduces the sums. PyTorch's `no_sync`. */
  noSync<T>(fn: () => T): T {
    checkMethod(this, 'noSync', arguments, 1)
    checkCallable('noSync', 'fn', fn)
    const own: Unit[] = unitsIn(this)
    const before = own.map(({ sync }) => sync)
    for (const unit of own) unit.sync = false
    try {
      return fn()
    } finally {
      own.forEach((unit, i) => {
        unit.sync = before[i] ?? true
      })
    }
  }

  /** The ranks among which this unit is divided. */
  get processGroup(): ProcessGroup {
    return unitOf(this).settings.shardGroup
  }
}
