// What an in-place operator keeps of the tensor that it overwrites.
import { FakeTensorMode, fakeLike, isArgList, withMode } from '../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import { clone } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import { noGrad } from './gradMode.ts'
import { producerOf, setGradFn } from './node.ts'

/** Computes a derivative without data, and notices whether it reads a tensor, or only asks for its shape. */
class ReadsOf extends FakeTensorMode {
  readonly #tensor: Tensor
  found = false

  constructor(tensor: Tensor) {
    super()
    this.#tensor = tensor
  }

  override handle(op: OpDef, args: readonly Arg[]): Result {
    this.found ||= args.some((arg) => arg === this.#tensor || (isArgList(arg) && arg.includes(this.#tensor)))
    return super.handle(op, args)
  }
}

/** Answers by operator, and by its arguments: which tensors want gradients, and what the others are, which may decide what a derivative reads. */
const answers = new WeakMap<OpDef, Map<string, boolean>>()

/** Calls whose numbers differ each time must not fill the memory. */
const MOST_ANSWERS = 64

const wants = (arg: Arg): boolean => (arg instanceof Tensor ? arg.requiresGrad : isArgList(arg) && arg.some(wants))

const faked = (arg: Arg): Arg => (arg instanceof Tensor ? fakeLike(arg) : isArgList(arg) ? arg.map(faked) : arg)

/** Whether the gradients of a call need what its first argument was. */
function readsSelf(op: OpDef, args: readonly Arg[]): boolean {
  const { derivative } = op
  if (derivative === null) return false
  const needs = args.map(wants)
  const key = args.map((arg, i) => (arg instanceof Tensor || isArgList(arg) ? `tensor ${needs[i]}` : String(arg))).join()
  const known = answers.get(op) ?? new Map<string, boolean>()
  const answer = known.get(key)
  if (answer !== undefined) return answer
  answers.set(op, known)
  if (known.size === MOST_ANSWERS) known.clear()
  const [self, ...rest] = args.map(faked)
  if (!(self instanceof Tensor)) return false
  const mode = new ReadsOf(self)
  try {
    noGrad(() => withMode(mode, () => derivative([fakeLike(self)], { args: [self, ...rest], outputs: [fakeLike(self)], needs })))
  } catch {
    // It looks at values.
    mode.found = true
  }
  known.set(key, mode.found)
  return mode.found
}

/**
 * The arguments of an in-place call as its node on the tape keeps them: with a copy of the first one if the gradients need what it was. As in PyTorch, `x.sin_()` can be
 * differentiated, at the price of that copy.
 */
export function keptArguments(op: OpDef, args: readonly Arg[]): readonly Arg[] {
  const [self, ...rest] = args
  if (!(self instanceof Tensor) || !readsSelf(op, args)) return args
  const copy = noGrad(() => clone(self))
  if (self.requiresGrad) {
    const producer = producerOf(self)
    if (producer !== null) setGradFn(copy, producer, self.outputNr)
  }
  return [copy, ...rest]
}
