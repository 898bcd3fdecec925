// The composition root of what all programs with tensors have, whichever operators they load: the methods of Tensor that are not operators, and what tensors say about names
// that they do not have.
import { dispatchState, freeingMethods } from '../dispatch/index.ts'
import { parameterMethods } from '../nn/parameter.ts'
import { tensor } from '../ops/create/tensor.ts'
import { indexMethods } from '../ops/view/getitem.ts'
import { transposeAccessors } from '../ops/view/transposes.ts'
import { nameTarget } from '../protocol/index.ts'
import { Tensor, dataMethods, installMethods, transferMethods, valuesOfFakes } from '../tensor/index.ts'
import { markCopy } from './copies.ts'
import { guideTensors } from './tensorNames.ts'

let isInstalled = false

/** Gives tensors these methods. Only once: defining the methods again made training steps 45% slower. */
export function installTensorBase(): void {
  if (isInstalled) return
  isInstalled = true
  for (const methods of [dataMethods, freeingMethods, transferMethods, parameterMethods, indexMethods, transposeAccessors]) installMethods(methods)
  valuesOfFakes.read = (fake, whole) => dispatchState.mode?.read?.(fake, whole)
  nameTarget(tensor, { name: 'torch.tensor' })
  guideTensors()
  markCopy(Tensor.prototype)
}
