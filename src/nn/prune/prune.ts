// Pruning of parameters: `weight` becomes `weight_orig`, the parameter, times `weight_mask`, a buffer. PyTorch's torch.nn.utils.prune.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { copy_, mul, narrow, onesLike, reshape } from '../../ops/index.ts'
import { checkCount, checkIterable, checkModule, checkOptions, valueText } from '../../protocol/index.ts'
import { Tensor, checkTensor } from '../../tensor/index.ts'
import { computeAttribute, parameterOf } from '../parametrize/parametrize.ts'
import { parametersToVector } from '../vectors.ts'
import {
  BasePruningMethod,
  CustomFromMask,
  Identity,
  L1Unstructured,
  LnStructured,
  RandomStructured,
  RandomUnstructured,
  checkShape,
  combinedMask,
} from './methods.ts'

export { BasePruningMethod, CustomFromMask, Identity, L1Unstructured, LnStructured, RandomStructured, RandomUnstructured }
export type { PruneOptions, PruningType } from './methods.ts'

/** Options of the functions that choose by values. */
export interface ScoreOptions {
  /** A tensor of the parameter's shape that decides instead of the values. */
  readonly importanceScores?: Tensor | null
}

const originalOf = (name: string): string => `${name}_orig`
const maskOf = (name: string): string => `${name}_mask`

/** A tensor that pruning has given a module; null if there is none. */
function ownTensor(module: Module, name: string): Tensor | null {
  const value: unknown = Object.hasOwn(module, name) ? Reflect.get(module, name) : null
  return value instanceof Tensor ? value : null
}

const isPrunedAt = (module: Module, name: string): boolean =>
  ownTensor(module, originalOf(name)) !== null && ownTensor(module, maskOf(name)) !== null && !Object.hasOwn(module, name)

const required = (module: Module, name: string): Tensor => {
  const value = ownTensor(module, name)
  if (value === null) throw new ArgumentError(`${module.getName()}: ${name} is missing.`)
  return value
}

/** The current value of a parameter, pruned or not. */
function valueOf(where: string, module: Module, name: string): Tensor {
  if (!isPrunedAt(module, name)) return parameterOf(where, module, name)
  return mul(required(module, originalOf(name)), required(module, maskOf(name)))
}

/**
 * Prunes a parameter by a method: what is pruned already stays so. Returns the module. PyTorch's `BasePruningMethod.apply`.
 *
 * Throws ArgumentError if there is no such parameter or the method refuses it; ShapeError if the scores have another shape. The module is then as before.
 */
export function apply<M extends Module>(module: M, name: string, method: BasePruningMethod, options: ScoreOptions = {}): M {
  const where = 'prune.apply'
  checkCount(where, arguments, 4)
  checkOptions(where, options, { importanceScores: true })
  if (!(method instanceof BasePruningMethod)) throw new ArgumentError(`${where}: method must be a BasePruningMethod, got ${valueText(method)}.`)
  const value = valueOf(where, module, name)
  const scores = options.importanceScores ?? value
  checkTensor(where, 'importanceScores', scores)
  checkShape(where, 'importanceScores', scores, value)
  const before = isPrunedAt(module, name) ? required(module, maskOf(name)) : null
  const mask = noGrad(() =>
    before === null ? method.computeMask(scores.detach(), onesLike(value.detach())) : combinedMask(method, scores.detach(), before.clone()),
  )
  checkShape(where, 'the mask', mask, value)
  if (before !== null) {
    noGrad(() => copy_(before, mask))
    return module
  }
  const parameter = parameterOf(where, module, name)
  computeAttribute(
    module,
    name,
    (self) => mul(required(self, originalOf(name)), required(self, maskOf(name))),
    (self) => {
      throw new ArgumentError(`${self.getName()}: ${name} is pruned, and cannot be assigned; call nn.utils.prune.remove(module, '${name}') first.`)
    },
  )
  module.registerParameter(originalOf(name), parameter)
  module.registerBuffer(maskOf(name), mask.detach())
  return module
}

/** Gives a parameter a mask of ones. PyTorch's `prune.identity`. */
export function identity<M extends Module>(module: M, name: string): M {
  checkCount('prune.identity', arguments, 2)
  return apply(module, name, new Identity())
}

/** Prunes elements at random: a fraction, or a whole number of them. PyTorch's `prune.random_unstructured`. */
export function randomUnstructured<M extends Module>(module: M, name: string, amount: number): M {
  checkCount('prune.randomUnstructured', arguments, 3)
  return apply(module, name, new RandomUnstructured(amount))
}

/** Prunes the elements of the least absolute values: a fraction, or a whole number of them. PyTorch's `prune.l1_unstructured`. */
export function l1Unstructured<M extends Module>(module: M, name: string, amount: number, options: ScoreOptions = {}): M {
  checkCount('prune.l1Unstructured', arguments, 4)
  return apply(module, name, new L1Unstructured(amount), options)
}

/** Prunes slices along `dim` at random: a fraction, or a whole number of them. PyTorch's `prune.random_structured`. */
export function randomStructured<M extends Module>(module: M, name: string, amount: number, dim: number): M {
  checkCount('prune.randomStructured', arguments, 4)
  return apply(module, name, new RandomStructured(amount, dim))
}

/** Prunes the slices along `dim` of the least `n`-norms: a fraction, or a whole number of them. PyTorch's `prune.ln_structured`. */
export function lnStructured<M extends Module>(
  module: M,
  name: string,
  amount: number,
  n: number | 'fro' | 'nuc',
  dim: number,
  options: ScoreOptions = {},
): M {
  checkCount('prune.lnStructured', arguments, 6)
  return apply(module, name, new LnStructured(amount, n, dim), options)
}

/** Prunes where `mask` is 0. PyTorch's `prune.custom_from_mask`. */
export function customFromMask<M extends Module>(module: M, name: string, mask: Tensor): M {
  checkCount('prune.customFromMask', arguments, 3)
  checkTensor('prune.customFromMask', 'mask', mask)
  return apply(module, name, new CustomFromMask(mask))
}

/** A parameter by its module and its name. */
export type ParameterPlace = readonly [module: Module, name: string]

/** The scores of a parameter, by its module and name; what is missing is decided by the values. */
export interface GlobalOptions {
  readonly importanceScores?: readonly (readonly [place: ParameterPlace, scores: Tensor])[]
}

/**
 * Prunes several parameters as if they were one, by an unstructured method. PyTorch's `prune.global_unstructured`.
 *
 * Throws ArgumentError unless `parameters` are pairs of modules and names, and `method` is of type 'unstructured'.
 */
export function globalUnstructured(parameters: Iterable<ParameterPlace>, method: BasePruningMethod, options: GlobalOptions = {}): void {
  const where = 'prune.globalUnstructured'
  checkCount(where, arguments, 3)
  checkOptions(where, options, { importanceScores: true })
  checkIterable(where, 'parameters', parameters)
  const places = [...parameters]
  for (const place of places)
    if (!Array.isArray(place)) throw new ArgumentError(`${where}: parameters must be pairs [module, name], got ${valueText(place)}.`)
  if (!(method instanceof BasePruningMethod) || method.pruningType !== 'unstructured')
    throw new ArgumentError(
      `${where}: only methods of type 'unstructured' are supported, got ${method instanceof BasePruningMethod ? `'${method.pruningType}'` : valueText(method)}.`,
    )
  const values = places.map(([module, name]) => valueOf(where, module, name).detach())
  const scores = places.map(([module, name], i) => {
    const given = options.importanceScores?.find(([[owner, own]]) => owner === module && own === name)?.[1] ?? values[i]
    if (given === undefined || values[i] === undefined) throw new ArgumentError(`${where}: no scores for '${name}'.`)
    checkShape(where, 'importanceScores', given, values[i])
    return given
  })
  if (places.length === 0) return
  const masks = places.map(([module, name], i) => ownTensor(module, maskOf(name)) ?? onesLike(values[i] ?? required(module, name)))
  const mask = noGrad(() => combinedMask(method, parametersToVector(scores), parametersToVector(masks)))
  let from = 0
  places.forEach(([module, name], i) => {
    const count = values[i]?.numel ?? 0
    customFromMask(module, name, reshape(narrow(mask, 0, from, count), values[i]?.sizes ?? []))
    from += count
  })
}

/**
 * Makes a pruned parameter an ordinary one with the pruned value; returns the module. PyTorch's `prune.remove`.
 *
 * Throws ArgumentError if it is not pruned.
 */
export function remove<M extends Module>(module: M, name: string): M {
  checkCount('prune.remove', arguments, 2)
  checkModule('prune.remove', 'module', module)
  if (!isPrunedAt(module, name))
    throw new ArgumentError(`prune.remove: parameter '${name}' of ${module.getName()} has to be pruned before pruning can be removed.`)
  const parameter = required(module, originalOf(name))
  const value = mul(parameter.detach(), required(module, maskOf(name)))
  noGrad(() => copy_(parameter, value))
  Reflect.deleteProperty(module, originalOf(name))
  Reflect.deleteProperty(module, maskOf(name))
  Object.defineProperty(module, name, { value: parameter, writable: true, enumerable: true, configurable: true })
  return module
}

/** Whether a parameter of the module, or of a module below it, is pruned. PyTorch's `prune.is_pruned`. */
export function isPruned(module: Module): boolean {
  checkCount('prune.isPruned', arguments, 1)
  checkModule('prune.isPruned', 'module', module)
  for (const part of module.modules())
    for (const key of Object.keys(part)) if (key.endsWith('_orig') && isPrunedAt(part, key.slice(0, -'_orig'.length))) return true
  return false
}
