// The composition root of groups of operators.
import type { OpFunction } from '../ops/define/declaration.ts'
import { registerOp } from '../ops/define/table.ts'
import { rareOps } from '../kernels/scalars/rareOps.ts'
import { addScalarOps } from '../kernels/scalars/scalarOps.ts'
import { installTensorBase } from './tensorBase.ts'

/** Registers operators, with the methods of tensors that they have. Those that are there already stay. */
export function installOperators(operators: readonly OpFunction[]): void {
  installTensorBase()
  for (const operator of operators) registerOp(operator)
}

/** Registers the operators of a group besides core, which may compute with any scalar operation. */
export function installGroup(operators: readonly OpFunction[]): void {
  addScalarOps(rareOps)
  installOperators(operators)
}
