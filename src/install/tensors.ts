// The composition root of tensors: the operator table, the methods of Tensor, and autograd.
import { setStackText } from '../errors/index.ts'
import { autogradMethods, installAutograd } from '../autograd/index.ts'
import { parameterMethods } from '../nn/parameter.ts'
import { allAliases } from '../ops/aliases.ts'
import { allclose, compareMethods, equal } from '../ops/compare.ts'
import { allOperators } from '../ops/generated/all.ts'
import { registerOp } from '../ops/table.ts'
import { newTensorMethods } from '../ops/newTensors.ts'
import { tensor } from '../ops/tensor.ts'
import { indexMethods } from '../ops/view/getitem.ts'
import { transposeAccessors } from '../ops/view/permute.ts'
import { nameTarget } from '../protocol/index.ts'
import { programFirst } from '../provenance/index.ts'
import { Tensor, dataMethods, installMethods, transferMethods } from '../tensor/index.ts'
import { markCopy } from './copies.ts'
import { explainTensorNames } from './unknownNames.ts'

let isInstalled = false

/**
 * Registers our operators, gives tensors their methods, and switches the recording of gradients on. Only once: defining the methods again made training
 * steps 45% slower.
 */
export function installTensors(): void {
  if (isInstalled) return
  isInstalled = true
  setStackText(programFirst)
  for (const methods of [
    dataMethods,
    transferMethods,
    autogradMethods,
    parameterMethods,
    compareMethods,
    indexMethods,
    newTensorMethods,
    transposeAccessors,
  ])
    installMethods(methods)
  for (const operator of [...allOperators, ...allAliases]) registerOp(operator)
  for (const [name, fn] of Object.entries({ tensor, allclose, equal })) nameTarget(fn, { name: `torch.${name}` })
  installAutograd()
  explainTensorNames()
  markCopy(Tensor.prototype)
}
