// The composition root of tensors: the operator table, the methods of Tensor, and autograd.
import { setStackText } from '../errors/index.ts'
import { autogradMethods, installAutograd } from '../autograd/index.ts'
import { allAliases } from '../ops/names/aliases.ts'
import { allclose, compareMethods, equal } from '../ops/testing/compare.ts'
import { allOperators } from '../ops/generated/all.ts'
import { registerOp } from '../ops/define/table.ts'
import { installThreads } from '../kernels/run/compile.ts'
import { threaded } from '../kernels/threads/threaded.ts'
import { rareOps } from '../kernels/scalars/rareOps.ts'
import { addScalarOps } from '../kernels/scalars/scalarOps.ts'
import { installComplex } from '../ops/complex/handler.ts'
import { newTensorMethods } from '../ops/create/newTensors.ts'
import { explainMissingTargets, nameTarget } from '../protocol/index.ts'
import { programFirst } from '../provenance/index.ts'
import { installMethods } from '../tensor/index.ts'
import { installTensorBase } from './tensorBase.ts'
import { explainTensorNames } from './unknownNames.ts'

let isInstalled = false

/**
 * Registers all our operators, gives tensors their methods, and switches the recording of gradients on. Only once: defining the methods again made training
 * steps 45% slower.
 */
export function installTensors(): void {
  if (isInstalled) return
  isInstalled = true
  setStackText(programFirst)
  addScalarOps(rareOps)
  installThreads(threaded)
  installTensorBase()
  for (const methods of [autogradMethods, compareMethods, newTensorMethods]) installMethods(methods)
  for (const operator of [...allOperators, ...allAliases]) registerOp(operator)
  for (const [name, fn] of Object.entries({ allclose, equal })) nameTarget(fn, { name: `torch.${name}` })
  installComplex()
  installAutograd()
  explainTensorNames()
  explainMissingTargets(null)
}
