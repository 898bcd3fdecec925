// The composition root of groups of operators.
import type { OpFunction } from '../ops/declaration.ts'
import { registerOp } from '../ops/table.ts'
import { installTensorBase } from './tensorBase.ts'

/** Registers operators, with the methods of tensors that they have. Those that are there already stay. */
export function installOperators(operators: readonly OpFunction[]): void {
  installTensorBase()
  for (const operator of operators) registerOp(operator)
}
