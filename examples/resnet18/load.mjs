// Weights from a file of PyTorch, and a model of the size that they say.
import { loadSafetensors, loadTorchFile } from 'tensorfx/interop'
import { ResNet18 } from './model.mjs'

/** A ResNet-18 with the weights of a .safetensors, .pt or .pth file, ready to classify. */
export async function loadResNet18(file) {
  const state = await (String(file).endsWith('.safetensors') ? loadSafetensors(file) : loadTorchFile(file))
  const [width, classes] = ['conv1.weight', 'fc.weight'].map((name) => {
    const weight = state.get(name)
    if (weight === undefined) throw new Error(`${file} holds no ResNet-18: there is no '${name}' in it`)
    return weight.size(0)
  })
  const model = new ResNet18({ width, classes })
  model.loadStateDict(state)
  return model.eval()
}
