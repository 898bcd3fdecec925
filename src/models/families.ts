// The families by the `model_type` of config.json. Each is loaded when a checkpoint asks for it.
import { ArgumentError } from '../errors/index.ts'
import { nearest, valueText } from '../protocol/index.ts'
import type { Family } from './family.ts'

const families: Readonly<Record<string, () => Promise<Family>>> = {
  gpt2: async () => (await import('./gpt2.ts')).gpt2,
  llama: async () => (await import('./llama.ts')).llama,
  qwen2: async () => (await import('./llama.ts')).qwen2,
  mixtral: async () => (await import('./llama.ts')).mixtral,
  bert: async () => (await import('./bert.ts')).bert,
  t5: async () => (await import('./t5.ts')).t5,
  vit: async () => (await import('./vit.ts')).vit,
  whisper: async () => (await import('./whisper.ts')).whisper,
  clip: async () => (await import('./clip.ts')).clip,
  mamba: async () => (await import('./mamba.ts')).mamba,
  convnext: async () => (await import('./convnext.ts')).convnext,
  resnet: async () => (await import('./resnet.ts')).resnet,
  mobilenet_v3: async () => (await import('./mobilenet.ts')).mobilenetV3,
  efficientnet: async () => (await import('./mobilenet.ts')).efficientnet,
  unet: async () => (await import('./unet.ts')).unet,
}

/** The family of that name. Throws ArgumentError if there is none. */
export async function familyOf(where: string, name: unknown): Promise<Family> {
  const load = typeof name === 'string' && Object.hasOwn(families, name) ? families[name] : undefined
  if (load !== undefined) return load()
  const near = typeof name === 'string' ? nearest(name, Object.keys(families)) : null
  throw new ArgumentError(
    `${where}: config.json: 'model_type' must be one of ${Object.keys(families).join(', ')}, got ${valueText(name)}.${near === null ? '' : ` Did you mean '${near}'?`} Make other models yourself and load their weights with loadSafetensors of 'tensorfx/interop'.`,
  )
}
