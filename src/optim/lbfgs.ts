// LBFGS: a method of Newton's kind, which learns the curvature from the last gradients. It calls the closure several times in a step.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, InternalError } from '../errors/index.ts'
import { beyondLimit } from '../kernels/index.ts'
import { abs, add, add_, cat, clone, copy_, dot, max, mul, neg, reshape, sub, sum, zeros } from '../ops/index.ts'
import { checkArgument, checkCount, checkMethod, isCallable, valueText } from '../protocol/index.ts'
import { Tensor, checkTensor } from '../tensor/index.ts'
import { strongWolfe } from './lineSearch.ts'
import { Optimizer, closureResult } from './optimizer.ts'
import type { BaseOptions, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

/** Options of {@link LBFGS}. */
export interface LBFGSOptions extends BaseOptions {
  /** Iterations of a step; default 20. */
  readonly maxIter?: number
  /** Calls of the closure in a step; default 1.25 times as many. */
  readonly maxEval?: number | null
  /** A step ends when no gradient is greater; default 1e-7. */
  readonly toleranceGrad?: number
  /** A step ends when the parameters or the loss change less; default 1e-9. */
  readonly toleranceChange?: number
  /** How many changes are remembered; default 100. */
  readonly historySize?: number
  /** Look for a good length of each step (`'strong_wolfe'`); otherwise (null) it is `lr`. */
  readonly lineSearchFn?: 'strong_wolfe' | null
}

interface LBFGSState extends ParamState {
  funcEvals: number
  nIter: number
  d: Tensor
  t: number
  /** Changes of the gradient, of the parameters, and the inverse of their product. */
  oldDirs: Tensor[]
  oldStps: Tensor[]
  ro: number[]
  hDiag: number
  prevFlatGrad: Tensor
  prevLoss: number
}

const number = (t: Tensor): number => Number(t.item())
const product = (a: Tensor, b: Tensor): number => number(dot(a, b))
const greatest = (t: Tensor): number => number(max(abs(t)))

/**
 * The limited-memory BFGS method; all parameters must be in one group. `step(closure)` calls the closure, which computes the loss and its gradients, several
 * times, and returns the first loss. PyTorch's `torch.optim.LBFGS`.
 *
 *     optimizer.step(() => {
 *       optimizer.zeroGrad()
 *       const loss = model(x).sub(y).square().mean()
 *       loss.backward()
 *       return loss
 *     })
 */
export class LBFGS extends Optimizer<LBFGSOptions> {
  constructor(params: Params<LBFGSOptions>, options?: LBFGSOptions) {
    checkCount('optim.LBFGS', arguments, 2)
    const defaults = { lr: 1, maxIter: 20, maxEval: null, toleranceGrad: 1e-7, toleranceChange: 1e-9, historySize: 100, lineSearchFn: null }
    super('LBFGS', params, defaults, options)
    if (this.paramGroups.length !== 1)
      throw new ArgumentError(
        `optim.LBFGS: the parameters must be in one group, got ${this.paramGroups.length}; its steps concern all of them at once.`,
      )
  }

  protected override checkGroup({ lr, maxIter, maxEval, historySize, lineSearchFn }: Required<LBFGSOptions>): void {
    this.checkAtLeast0({ lr })
    for (const [name, value] of Object.entries({ maxIter, maxEval: maxEval ?? 1, historySize }))
      this.checkOption(name, value, 'a positive integer', Number.isInteger(value) && value > 0)
    if (lineSearchFn !== null && lineSearchFn !== 'strong_wolfe')
      throw new ArgumentError(`optim.LBFGS: option 'lineSearchFn' must be 'strong_wolfe' or null, got ${valueText(lineSearchFn)}.`)
  }

  protected override readState(where: string, given: ParamState): ParamState {
    const state: ParamState = { ...newState(), ...given }
    const all = (name: string, of: (item: unknown) => boolean, what: string): number => {
      const value = state[name]
      checkArgument(Array.isArray(value) && value.every(of), where, name, what, value)
      return Array.isArray(value) ? value.length : 0
    }
    const isTensor = (value: unknown): boolean => value instanceof Tensor
    const isNumber = (value: unknown): boolean => typeof value === 'number'
    for (const name of ['d', 'prevFlatGrad']) checkTensor(where, name, state[name])
    for (const name of ['funcEvals', 'nIter', 't', 'hDiag', 'prevLoss']) checkArgument(isNumber(state[name]), where, name, 'a number', state[name])
    const counts = new Set([
      all('oldDirs', isTensor, 'an array of Tensors'),
      all('oldStps', isTensor, 'an array of Tensors'),
      all('ro', isNumber, 'an array of numbers'),
    ])
    if (counts.size > 1) throw new ArgumentError(`${where}: oldDirs, oldStps and ro must have the same length.`)
    return state
  }

  protected override newState(): LBFGSState {
    return newState()
  }

  protected override shapeOfState(name: string, parameter: Tensor): readonly number[] {
    if (name === 'ro') return []
    return [this.paramGroups[0]?.params.reduce((count, { numel }) => count + numel, 0) ?? parameter.numel]
  }

  protected override update(): void {
    throw new InternalError('LBFGS updates all parameters at once')
  }

  override step(): void
  override step<T>(closure: () => T): T
  override step<T>(closure?: () => T): T {
    checkMethod(this, 'step', arguments, 1)
    if (!isCallable(closure))
      throw new ArgumentError(`optim.LBFGS.step: needs a function that computes the loss and its gradients, got ${valueText(closure)}.`)
    return noGrad(() => this.#undoneOnError(() => this.#step(closure)))
  }

  /** Runs `step`; if it throws, parameters and state are as before. */
  #undoneOnError<T>(step: () => T): T {
    const params = this.paramGroups.flatMap((group) => group.params)
    const before = params.map((p) => clone(p))
    const states = [...this.state].map(([parameter, state]) => [parameter, { ...state }] as const)
    try {
      return step()
    } catch (error) {
      beyondLimit(() => params.forEach((p, i) => void copy_(p, before[i] ?? p)))
      this.state.clear()
      for (const [parameter, state] of states) this.state.set(parameter, state)
      throw error
    }
  }

  #step<T>(closure: () => T): T {
    const [group] = this.paramGroups
    const [first] = group?.params ?? []
    if (group === undefined || first === undefined) throw new InternalError('LBFGS has no parameters')
    const { params, lr, maxIter, toleranceGrad, toleranceChange, historySize, lineSearchFn } = group
    const maxEval = group.maxEval ?? Math.floor((maxIter * 5) / 4)
    const state = this.stateOf<LBFGSState>(first, group)
    const flatGrad = (): Tensor => cat(params.map((p) => reshape(p.grad ?? zeros(p.shape, { dtype: p.dtype, device: p.device }), [-1])))
    const evaluate = (): { readonly result: T; readonly f: number; readonly g: Tensor } => {
      const result = closureResult(this.className, closure)
      state.funcEvals++
      return { result, f: result instanceof Tensor ? number(result) : Number(result), g: flatGrad() }
    }
    const { result, f, g } = evaluate()
    let [loss, grad, evaluations] = [f, g, 1]
    if (greatest(grad) <= toleranceGrad) return result
    for (let i = 1; i <= maxIter; i++) {
      if (++state.nIter === 1) Object.assign(state, newState(), { funcEvals: state.funcEvals, nIter: 1, d: neg(grad) })
      else {
        remember(state, grad, historySize)
        state.d = direction(state, grad)
      }
      state.prevFlatGrad = grad
      state.prevLoss = loss
      state.t = state.nIter === 1 ? Math.min(1, 1 / number(sum(abs(grad)))) * lr : lr
      const { d } = state
      if (product(grad, d) > -toleranceChange) break
      if (lineSearchFn !== null) {
        const start = params.map((p) => clone(p))
        const along = (t: number): { readonly f: number; readonly g: Tensor } => {
          move(params, d, t)
          const there = evaluate()
          params.forEach((p, k) => void copy_(p, start[k] ?? p))
          return there
        }
        const before = state.funcEvals
        const found = strongWolfe(along, state.t, d, loss, grad)
        ;[loss, grad, state.t] = [found.f, found.g, found.t]
        evaluations += state.funcEvals - before
        move(params, d, state.t)
      } else {
        move(params, d, state.t)
        if (i === maxIter) break
        const there = evaluate()
        ;[loss, grad] = [there.f, there.g]
        evaluations++
      }
      if (evaluations >= maxEval || greatest(grad) <= toleranceGrad) break
      if (greatest(mul(d, state.t)) <= toleranceChange || Math.abs(loss - state.prevLoss) < toleranceChange) break
    }
    return result
  }
}

const newState = (): LBFGSState => {
  const none = zeros([0])
  return { funcEvals: 0, nIter: 0, d: none, t: 0, oldDirs: [], oldStps: [], ro: [], hDiag: 1, prevFlatGrad: none, prevLoss: 0 }
}

/** Adds `t` times the direction to the parameters. */
function move(params: readonly Tensor[], d: Tensor, t: number): void {
  let from = 0
  for (const p of params) {
    add_(p, reshape(d.narrow(0, from, p.numel), p.shape), { alpha: t })
    from += p.numel
  }
}

/** Remembers the last step and how it changed the gradient, if the function is convex along it. */
function remember(state: LBFGSState, grad: Tensor, historySize: number): void {
  const y = sub(grad, state.prevFlatGrad)
  const s = mul(state.d, state.t)
  const ys = product(y, s)
  if (!(ys > 1e-10)) return
  const skip = Math.max(0, state.oldDirs.length - historySize + 1)
  state.oldDirs = [...state.oldDirs.slice(skip), y]
  state.oldStps = [...state.oldStps.slice(skip), s]
  state.ro = [...state.ro.slice(skip), 1 / ys]
  state.hDiag = ys / product(y, y)
}

/** The gradient times the approximate inverse of the second derivatives, downwards (the two loops of Nocedal). */
function direction({ oldDirs, oldStps, ro, hDiag }: LBFGSState, grad: Tensor): Tensor {
  const weights: number[] = []
  let q = neg(grad)
  for (const [i, y] of [...oldDirs.entries()].toReversed()) {
    const weight = product(oldStps[i] ?? y, q) * (ro[i] ?? 0)
    weights[i] = weight
    q = add(q, y, { alpha: -weight })
  }
  let r = mul(q, hDiag)
  for (const [i, y] of oldDirs.entries()) {
    const back = product(y, r) * (ro[i] ?? 0)
    r = add(r, oldStps[i] ?? y, { alpha: (weights[i] ?? 0) - back })
  }
  return r
}
