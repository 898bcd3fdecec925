// Every family by its name: a function that makes a small model of it. Those of tensorfx/models come from there; the others are ported here.
import { Bert, Clip, ConvNeXt, EfficientNet, GPT2, Llama, Mamba, Mixtral, MobileNetV3, Qwen2, ResNet, T5, UNet, ViT, Whisper } from 'tensorfx/models'
import { families as densenet } from './densenet.mjs'
import { families as mobilenet } from './mobilenet.mjs'
import { families as regnet } from './regnet.mjs'
import { families as shufflenet } from './shufflenet.mjs'
import { families as swin } from './swin.mjs'
import { families as vgg } from './vgg.mjs'

const llama = { vocabSize: 24, hiddenSize: 16, intermediateSize: 24, numHiddenLayers: 2, numAttentionHeads: 4, numKeyValueHeads: 2 }
const tower = { hiddenSize: 16, numHiddenLayers: 1, numAttentionHeads: 2 }

export const families = {
  gpt2: () => new GPT2({ vocabSize: 24, nPositions: 12, nEmbd: 16, nHead: 2, nLayer: 2 }),
  llama: () => new Llama(llama),
  qwen2: () => new Qwen2({ ...llama, tieWordEmbeddings: true }),
  mixtral: () => new Mixtral({ ...llama, numLocalExperts: 4 }),
  bert: () => new Bert({ vocabSize: 24, maxPositionEmbeddings: 12, hiddenSize: 16, numAttentionHeads: 2, numHiddenLayers: 2, intermediateSize: 32 }),
  t5: () =>
    new T5({
      vocabSize: 24,
      dModel: 16,
      numHeads: 2,
      dKv: 8,
      dFf: 24,
      numLayers: 2,
      relativeAttentionNumBuckets: 8,
      relativeAttentionMaxDistance: 16,
    }),
  whisper: () =>
    new Whisper({
      vocabSize: 20,
      numMelBins: 6,
      dModel: 16,
      encoderLayers: 1,
      encoderAttentionHeads: 2,
      decoderLayers: 1,
      decoderAttentionHeads: 2,
      maxSourcePositions: 8,
      maxTargetPositions: 10,
    }),
  clip: () =>
    new Clip({
      projectionDim: 8,
      textConfig: { ...tower, vocabSize: 20, maxPositionEmbeddings: 8 },
      visionConfig: { ...tower, imageSize: 16, patchSize: 8 },
    }),
  mamba: () => new Mamba({ vocabSize: 20, hiddenSize: 12, numHiddenLayers: 2, stateSize: 4, convKernel: 3, timeStepRank: 2 }),
  unet: () => new UNet({ width: 8, time: 16 }),
  resnet: () =>
    new ResNet({
      stages: [
        { block: 'basic', width: 8, count: 2 },
        { block: 'basic', width: 12, count: 1 },
        { block: 'bottleneck', width: 4, count: 2 },
        { block: 'bottleneck', width: 6, count: 1 },
      ],
      stem: 8,
      numClasses: 5,
    }),
  ...vgg,
  ...densenet,
  ...mobilenet,
  mobilenet_v3: () =>
    new MobileNetV3({
      blocks: [
        { from: 8, kernel: 3, hidden: 8, to: 8, excite: true, activation: 'relu', stride: 2 },
        { from: 8, kernel: 3, hidden: 24, to: 16, excite: false, activation: 'relu', stride: 2 },
        { from: 16, kernel: 5, hidden: 32, to: 16, excite: true, activation: 'hardswish', stride: 1 },
      ],
      hidden: 24,
      numClasses: 5,
    }),
  efficientnet: () =>
    new EfficientNet({
      stages: [
        { from: 8, to: 8, count: 1, expand: 1, kernel: 3, stride: 1, fused: true },
        { from: 8, to: 16, count: 1, expand: 2, kernel: 3, stride: 2, fused: true },
        { from: 16, to: 16, count: 2, expand: 4, kernel: 5, stride: 2 },
      ],
      numClasses: 5,
    }),
  convnext: () => new ConvNeXt({ hiddenSizes: [8, 12, 16], depths: [1, 2, 1], numLabels: 5 }),
  ...shufflenet,
  ...regnet,
  vit: () => new ViT({ imageSize: 16, patchSize: 8, numHiddenLayers: 2, numAttentionHeads: 2, hiddenSize: 16, intermediateSize: 32, numLabels: 5 }),
  ...swin,
}
