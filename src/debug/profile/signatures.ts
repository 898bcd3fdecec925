// What operators were called with: the shapes and dtypes of their tensors, of which FLOPs and bytes are a function. A program repeats its calls, so a profile finds the signature of a call
// by a hash, which makes no object, stores its number, and works nothing out again.
import { isArgList } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { formulaOf } from './flops.ts'
import type { Formula } from './flops.ts'

/** A tensor as far as costs depend on it. */
interface TensorType {
  readonly sizes: readonly number[]
  readonly dtype: DType
}

/** What a call depends on: its tensors, those in lists too, and its flags. */
type Part = TensorType | boolean

/** Calls of an operator that cost the same. */
export interface Signature {
  /** The position among the signatures of all operators. */
  readonly index: number
  readonly inputs: readonly Part[]
  readonly outputs: readonly TensorType[]
  /** The shapes of the tensors among the arguments. */
  readonly shapes: readonly (readonly number[])[]
  readonly flops: number
  readonly bytes: number
  /** Another one of the operator with the same hash. */
  readonly other: Signature | undefined
}

/** The signatures of one operator. */
export class OperatorSignatures {
  readonly #all: Signature[]
  readonly #byHash = new Map<number, Signature>()
  readonly #formula: Formula | null
  readonly #isView: boolean

  /** `all` has those of all operators, and gets those that are new. */
  constructor(op: OpDef, all: Signature[]) {
    this.#all = all
    this.#formula = formulaOf(op)
    this.#isView = op.tags.has('view')
  }

  /** The signature of a call. */
  of(args: readonly Arg[], result: Result): Signature {
    const hash = hashOf(result, hashOfAll(args, 0))
    const first = this.#byHash.get(hash)
    for (let known = first; known !== undefined; known = known.other) if (fits(known, args, result)) return known
    const signature = this.#make(args, result, first)
    this.#byHash.set(hash, signature)
    return signature
  }

  #make(args: readonly Arg[], result: Result, other: Signature | undefined): Signature {
    const inputs = partsOf(args)
    const outputs = (result instanceof Tensor ? [result] : result).map(typeOf)
    const tensors = inputs.filter((part) => typeof part !== 'boolean')
    const first = result instanceof Tensor ? result : result[0]
    const signature = {
      index: this.#all.length,
      inputs,
      outputs,
      shapes: tensors.map(({ sizes }) => sizes),
      flops: this.#formula === null || first === undefined ? 0 : this.#formula(args, first),
      bytes: this.#isView ? 0 : [...tensors, ...outputs].reduce((sum, tensor) => sum + bytesOf(tensor), 0),
      other,
    }
    this.#all.push(signature)
    return signature
  }
}

const mixed = (hash: number, value: number): number => (Math.imul(hash, 31) + value) | 0

function hashOf(arg: Arg | undefined, before: number): number {
  if (arg instanceof Tensor) {
    const { sizes } = arg
    let hash = mixed(before, -1)
    for (let i = 0; i < sizes.length; i++) hash = mixed(hash, sizes[i] ?? 0)
    return hash
  }
  return typeof arg === 'boolean' ? mixed(before, arg ? -2 : -3) : isArgList(arg) ? hashOfAll(arg, before) : before
}

function hashOfAll(args: readonly Arg[], before: number): number {
  let hash = before
  for (let i = 0; i < args.length; i++) hash = hashOf(args[i], hash)
  return hash
}

const typeOf = ({ sizes, dtype }: Tensor): TensorType => ({ sizes, dtype })

const bytesOf = ({ sizes, dtype }: TensorType): number => sizes.reduce((product, size) => product * size, dtypeInfo[dtype].size)

const partsOf = (args: readonly Arg[]): readonly Part[] =>
  args.flatMap((arg): readonly Part[] =>
    arg instanceof Tensor ? [typeOf(arg)] : typeof arg === 'boolean' ? [arg] : isArgList(arg) ? partsOf(arg) : [],
  )

/** Whether a call has that signature. */
function fits({ inputs, outputs }: Signature, args: readonly Arg[], result: Result): boolean {
  if (matched(inputs, 0, args) !== inputs.length) return false
  if (result instanceof Tensor) return outputs.length === 1 && isOfType(result, outputs[0])
  if (outputs.length !== result.length) return false
  for (let i = 0; i < result.length; i++) if (!isOfType(result[i], outputs[i])) return false
  return true
}

/** How many parts the arguments have with those before them; -1 if they differ. */
function matched(parts: readonly Part[], from: number, args: readonly Arg[]): number {
  let at = from
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      const part = parts[at++]
      if (typeof part === 'boolean' || !isOfType(arg, part)) return -1
    } else if (typeof arg === 'boolean') {
      if (parts[at++] !== arg) return -1
    } else if (isArgList(arg)) {
      at = matched(parts, at, arg)
      if (at < 0) return -1
    }
  }
  return at
}

function isOfType(tensor: Tensor | undefined, type: TensorType | undefined): boolean {
  if (tensor === undefined || type === undefined || tensor.dtype !== type.dtype) return false
  const given = tensor.sizes
  const { sizes } = type
  if (given === sizes) return true
  if (given.length !== sizes.length) return false
  for (let i = 0; i < sizes.length; i++) if (given[i] !== sizes[i]) return false
  return true
}
