// The operator table: registered operators, by name and by function. The composition root registers ours; programs may register their own.
import type { OpDef } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument, isFunction, nameTarget, withName } from '../../protocol/index.ts'
import type { Effects, TargetFunction } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { callAs } from './call.ts'
import type { OpFunction } from './declaration.ts'

const table: OpDef[] = []
const byName = new Map<string, OpDef>()

/** Every registered operator, in the order of registration. */
export const allOps = (): readonly OpDef[] => table

/** The operator with that qualified name, e.g. 'torch.relu'; undefined if there is none. */
export const opByName = (qualname: string): OpDef | undefined => byName.get(qualname)

const isOpFunction = (fn: unknown): fn is OpFunction => isFunction(fn) && 'op' in fn

/** The operator behind a public function; undefined for any other function. */
export const opOf = (fn: unknown): OpDef | undefined => (isOpFunction(fn) ? fn.op : undefined)

/**
 * Enters an operator in the table and returns its function: graphs can name it, Tensor gets it as a method if it declares one. Registering it again does nothing.
 * Throws ArgumentError if another operator, or another method of Tensor, has the name already.
 */
export function registerOp<F extends OpFunction>(fn: F): F {
  checkArgument(isOpFunction(fn), 'registerOp', 'fn', 'a function that defineOp returned', fn)
  const { op } = fn
  const known = byName.get(op.qualname)
  if (known === op) return fn
  if (known !== undefined)
    throw new ArgumentError(`registerOp: there is another operator called '${op.qualname}'; give this one a name or a namespace of its own.`)
  if (op.method && op.fn.name in Tensor.prototype)
    throw new ArgumentError(
      `registerOp: Tensor already has a method '${op.fn.name}'; leave out \`method\` from ${op.qualname}, or give it another name.`,
    )
  const effects: Effects = op.tags.has('random') ? 'random' : op.tags.has('mutates') ? 'mutates' : 'pure'
  nameTarget(op.fn, { name: op.qualname, effects, schema: op.schema, ...(op.module === null ? {} : { module: op.module }) })
  table.push(op)
  byName.set(op.qualname, op)
  if (op.method) define(Tensor.prototype, op.fn.name, methodOf(op))
  // torch.Tensor.add_(x, y), as in PyTorch: the method as a function, which captured graphs print.
  if (op.qualname.startsWith('torch.Tensor.')) define(Tensor, op.fn.name, op.fn)
  return fn
}

function methodOf(op: OpDef): TargetFunction {
  const call = callAs(op, 'method')
  function method(this: Tensor, ...args: unknown[]): unknown {
    if (args.length === 1) return call.withTwo(this, args[0])
    // A spread would make room for many more.
    return args.length === 0 ? call.with([this]) : call.with([this, ...args])
  }
  return withName(method, op.fn.name)
}

function define(target: object, name: string, value: TargetFunction): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true })
}
