// Which modules of a model become units of their own.
import { ArgumentError } from '../../errors/index.ts'
import type { Module } from '../../module/index.ts'
import { ModuleDict, ModuleList, ParameterDict, ParameterList } from '../../nn/index.ts'
import {
  checkCallable,
  checkCount,
  checkIterable,
  checkModule,
  checkOptions,
  isCallable,
  isFunction,
  isPlainObject,
  valueText,
} from '../../protocol/index.ts'
import type { TensorLike } from '../../protocol/index.ts'
import type { UnitOptions } from './unitOptions.ts'

/** A class of modules: `nn.Linear`. */
export interface ModuleClass {
  readonly name: string
  readonly prototype: Module
}

/**
 * Decides about a module twice: with `recurse` whether to look at what is below it, and without whether to wrap it. `nonwrappedNumel` counts the elements of its
 * parameters that no unit has yet.
 */
export type WrapFunction = (module: Module, recurse: boolean, nonwrappedNumel: number) => boolean

/** What `autoWrapPolicy` may be. */
export type AutoWrapPolicy = WrapFunction | ModuleWrapPolicy | CustomPolicy

/** A module to wrap, and options that differ from those of the model. */
export interface WrapTarget {
  readonly module: Module
  readonly options: UnitOptions
}

/** What policies leave alone. */
export interface Ignored {
  readonly modules: ReadonlySet<unknown>
  readonly parameters: ReadonlySet<unknown>
}

const isOneOf = (module: Module, classes: readonly ModuleClass[]): boolean => classes.some((type) => type.prototype.isPrototypeOf(module))

function classList(where: string, classes: Iterable<ModuleClass>): readonly ModuleClass[] {
  checkIterable(where, 'classes', classes)
  const list = [...classes]
  for (const type of list) if (!isFunction(type)) throw new ArgumentError(`${where}: classes must be classes of modules, got ${valueText(type)}.`)
  return list
}

/** Wraps the modules of some classes, but not the model itself. PyTorch's `ModuleWrapPolicy`. */
export class ModuleWrapPolicy {
  readonly classes: readonly ModuleClass[]

  constructor(classes: Iterable<ModuleClass>) {
    checkCount('ModuleWrapPolicy', arguments, 1)
    this.classes = classList('ModuleWrapPolicy', classes)
  }

  /** @internal */
  targets(root: Module, ignored: Ignored): WrapTarget[] {
    return [...root.modules()]
      .filter((module) => !ignored.modules.has(module) && isOneOf(module, this.classes))
      .map((module) => ({ module, options: {} }))
  }

  toString(): string {
    return `ModuleWrapPolicy(${this.classes.map(({ name }) => name).join(', ')})`
  }
}

/**
 * Asks `fn` about every module: false leaves it alone, true wraps it, options wrap it with these in place of the model's. PyTorch's `CustomPolicy`.
 *
 * @example new CustomPolicy((module) => module instanceof nn.LayerNorm && { shardingStrategy: 'SHARD_GRAD_OP' })
 */
export class CustomPolicy {
  readonly #fn: (module: Module) => boolean | UnitOptions

  constructor(fn: (module: Module) => boolean | UnitOptions) {
    checkCount('CustomPolicy', arguments, 1)
    checkCallable('CustomPolicy', 'fn', fn)
    this.#fn = fn
  }

  /** @internal */
  targets(root: Module, ignored: Ignored): WrapTarget[] {
    return [...root.modules()].flatMap((module) => {
      if (ignored.modules.has(module)) return []
      const answer = this.#fn(module)
      if (answer === false) return []
      if (answer !== true && !isPlainObject(answer))
        throw new ArgumentError(`The function passed to CustomPolicy should return false, true or options, but it returned ${valueText(answer)}.`)
      return [{ module, options: answer === true ? {} : answer }]
    })
  }
}

/** Options of {@link sizeBasedAutoWrapPolicy}. */
export interface SizeBasedOptions {
  /** Modules that are not looked into. Default: `nn.MultiheadAttention`. */
  readonly forceLeafModules?: Iterable<ModuleClass>
  /** Modules that are not wrapped themselves. Default: `nn.ModuleList` and `nn.ModuleDict`. */
  readonly excludeWrapModules?: Iterable<ModuleClass>
}

const hasClassName = (module: Module, names: readonly string[]): boolean => {
  for (let type: unknown = Object.getPrototypeOf(module); type !== null && typeof type === 'object'; type = Object.getPrototypeOf(type))
    if (names.includes(type.constructor.name)) return true
  return false
}

/**
 * Wraps modules that have at least `minNumParams` elements of parameters left when what is below them has been wrapped. Default 1e8. Throws ArgumentError if that is no positive
 * number.
 */
export function sizeBasedAutoWrapPolicy(minNumParams = 1e8, options: SizeBasedOptions = {}): WrapFunction {
  checkCount('sizeBasedAutoWrapPolicy', arguments, 2)
  const where = 'sizeBasedAutoWrapPolicy'
  checkOptions(where, options, { forceLeafModules: true, excludeWrapModules: true })
  if (typeof minNumParams !== 'number' || !(minNumParams > 0))
    throw new ArgumentError(`${where}: minNumParams must be a positive number, got ${valueText(minNumParams)}.`)
  const given = (classes: Iterable<ModuleClass> | undefined, names: readonly string[]): ((module: Module) => boolean) => {
    if (classes === undefined) return (module) => hasClassName(module, names)
    const list = classList(where, classes)
    return (module) => isOneOf(module, list)
  }
  const isLeaf = given(options.forceLeafModules, ['MultiheadAttention'])
  const isExcluded = given(options.excludeWrapModules, ['ModuleList', 'ModuleDict'])
  return (module, recurse, nonwrappedNumel) => nonwrappedNumel >= minNumParams && !(recurse ? isLeaf(module) : isExcluded(module))
}

/** Wraps the modules of some classes: the blocks of a transformer. PyTorch's `transformer_auto_wrap_policy`. */
export function transformerAutoWrapPolicy(classes: Iterable<ModuleClass>): WrapFunction {
  checkCount('transformerAutoWrapPolicy', arguments, 1)
  const list = classList('transformerAutoWrapPolicy', classes)
  return (module, recurse) => recurse || isOneOf(module, list)
}

/** Wraps the modules for which `fn` is true. PyTorch's `lambda_auto_wrap_policy`. */
export function lambdaAutoWrapPolicy(fn: (module: Module) => boolean): WrapFunction {
  checkCount('lambdaAutoWrapPolicy', arguments, 1)
  checkCallable('lambdaAutoWrapPolicy', 'fn', fn)
  return (module, recurse) => recurse || fn(module)
}

/** Wraps every module. PyTorch's `always_wrap_policy`. */
export const alwaysWrapPolicy: WrapFunction = () => true

const CONTAINERS: readonly ModuleClass[] = [ModuleList, ModuleDict, ParameterList, ParameterDict]

/** Whether a module only holds others: without a forward of its own it cannot gather its parameters when it computes, and a wrapper would hide its methods. */
const isContainer = (module: Module): boolean => CONTAINERS.some((type) => module.forward === type.prototype.forward)

function numelOf(module: Module, ignored: Ignored): number {
  let sum = 0
  for (const parameter of module.parameters()) if (!ignored.parameters.has(parameter)) sum += numel(parameter)
  return sum
}

const numel = ({ shape }: TensorLike): number => shape.reduce((a, b) => a * b, 1)

/** What a function wraps, children first, and how many elements that are. */
function recursiveTargets(module: Module, policy: WrapFunction, ignored: Ignored, isRoot: boolean, targets: WrapTarget[]): number {
  const own = numelOf(module, ignored)
  if (!policy(module, true, own)) return 0
  let wrapped = 0
  for (const child of module.children()) if (!ignored.modules.has(child)) wrapped += recursiveTargets(child, policy, ignored, false, targets)
  if (isRoot || isContainer(module) || !policy(module, false, own - wrapped)) return wrapped
  targets.push({ module, options: {} })
  return own
}

/**
 * The modules below `root` that a policy wraps; never `root` itself, and no list or dict of modules or parameters: these have no forward. Throws ArgumentError if `policy` is no
 * function and no policy.
 */
export function wrapTargets(root: Module, policy: AutoWrapPolicy, ignored: Ignored): WrapTarget[] {
  checkModule('wrapTargets', 'root', root)
  if (policy instanceof ModuleWrapPolicy || policy instanceof CustomPolicy)
    return policy.targets(root, ignored).filter(({ module }) => module !== root && !isContainer(module))
  if (!isCallable(policy))
    throw new ArgumentError(
      `FullyShardedDataParallel: autoWrapPolicy must be a function, a ModuleWrapPolicy or a CustomPolicy, got ${valueText(policy)}.`,
    )
  const targets: WrapTarget[] = []
  recursiveTargets(root, policy, ignored, true, targets)
  return targets
}
