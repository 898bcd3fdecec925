// Small models of the families that write text.
import { torch } from 'tensorfx'
import { GPT2, Llama, Mamba, Mixtral, Qwen2 } from 'tensorfx/models'
import type { CausalModel } from 'tensorfx/models'

export const llama = { vocabSize: 24, hiddenSize: 16, intermediateSize: 24, numHiddenLayers: 2, numAttentionHeads: 4, numKeyValueHeads: 2 } as const
export const gpt2 = { vocabSize: 24, nPositions: 12, nEmbd: 16, nHead: 2, nLayer: 2 } as const

const makers: Readonly<Record<string, () => CausalModel>> = {
  gpt2: () => new GPT2(gpt2),
  llama: () => new Llama(llama),
  'llama 3.1': () =>
    new Llama({
      ...llama,
      headDim: 8,
      ropeTheta: 500,
      ropeScaling: { ropeType: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPositionEmbeddings: 16 },
    }),
  qwen2: () => new Qwen2({ ...llama, tieWordEmbeddings: true }),
  mixtral: () => new Mixtral({ ...llama, numLocalExperts: 4 }),
  mamba: () => new Mamba({ vocabSize: 24, hiddenSize: 12, numHiddenLayers: 2, stateSize: 4, convKernel: 3, timeStepRank: 2 }),
}

/** With weights large enough that tokens differ. */
export const writers: readonly (readonly [string, () => CausalModel])[] = Object.entries(makers).map(([name, make]) => [
  name,
  () => {
    torch.manualSeed(3)
    const model = make()
    for (const parameter of model.parameters()) if ('mul_' in parameter) Object(parameter).detach().mul_(6)
    return model
  },
])
