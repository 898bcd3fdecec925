// Generation against PyTorch without any cache (scripts/families/generation.py), and by properties: a cache changes nothing, and the search by enough beams finds the best of all texts.
import { readFileSync } from 'node:fs'
import { describe, expect, it, test } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { loadTorchFile } from 'tensorfx/interop'
import { DecodingCache, GPT2, T5, Whisper, generate } from 'tensorfx/models'
import { filteredScores } from '../../src/models/scores.ts'
import { fromStored } from '../pytorch/cases.ts'
import type { StoredTensor } from '../pytorch/cases.ts'
import { gpt2, writers } from './small.ts'

interface Search {
  readonly options: { readonly numBeams: number; readonly lengthPenalty: number; readonly eosTokenId?: number }
  readonly texts: readonly (readonly number[])[]
}

interface Recorded {
  readonly scores: StoredTensor
  readonly filters: readonly { readonly options: { temperature?: number; topK?: number; topP?: number }; readonly probabilities: StoredTensor }[]
  readonly prompt: StoredTensor
  readonly greedy: readonly (readonly number[])[]
  readonly beams: readonly Search[]
  readonly t5: { readonly source: StoredTensor; readonly greedy: readonly (readonly number[])[]; readonly beams: readonly (readonly number[])[] }
}

const golden = (file: string): URL => new URL(`../goldens/families/${file}`, import.meta.url)
const recorded: Recorded = JSON.parse(readFileSync(golden('generation.json'), 'utf8'))
const prompt = fromStored(recorded.prompt)
const integers = (rows: readonly (readonly number[])[]): Tensor => torch.tensor(rows.map((row) => [...row])).long()
const rows = (tensor: Tensor): unknown => [tensor.toArray()].flat().map((row) => (Array.isArray(row) ? row.map(Number) : row))

async function recordedGpt2(): Promise<GPT2> {
  const model = new GPT2(gpt2)
  model.loadStateDict(await loadTorchFile(golden('gpt2.pt')))
  return model
}

describe('choosing a token', () => {
  it.each(recorded.filters)('leaves the probabilities that PyTorch leaves: $options', ({ options, probabilities }) => {
    const { temperature = 1, topK = 0, topP = 1 } = options
    const own = filteredScores(fromStored(recorded.scores), { temperature, topK, topP }).softmax(-1)
    expect(own.sub(fromStored(probabilities)).abs().max().item()).toBeLessThan(1e-6)
  })

  it('draws tokens as often as their probabilities say, and never another one', async () => {
    const model = await recordedGpt2()
    const text = prompt.narrow(0, 1, 1)
    const options = { temperature: 1.3, topK: 4 }
    const wanted = filteredScores(noGrad(() => model(text)).select(1, 3), { ...options, topP: 1 })
      .softmax(-1)
      .flatten()
    const [draws, generator] = [4000, new torch.Generator().manualSeed(7)]
    const drawn = generate(model, text.expand(draws, -1), { maxNewTokens: 1, ...options, generator }).select(1, 4)
    const often = drawn.bincount({ minlength: 24 }).div(draws)
    expect(often.gt(0).logicalAnd(wanted.eq(0)).any().item()).toBe(false)
    // Five standard deviations of a share of 4,000 draws are at most 0.04.
    expect(often.sub(wanted).abs().max().item()).toBeLessThan(0.04)
  })

  it('draws the same again from a generator in the same state', async () => {
    const model = await recordedGpt2()
    const once = (seed: number): unknown =>
      rows(generate(model, prompt, { maxNewTokens: 6, temperature: 2, generator: new torch.Generator().manualSeed(seed) }))
    expect(once(1)).toEqual(once(1))
    expect(once(1)).not.toEqual(once(2))
  })
})

describe('GPT-2 with recorded weights', () => {
  it.each([true, false])('writes what PyTorch writes, with useCache: %s', async (useCache) => {
    const seen: unknown[] = []
    const model = await recordedGpt2()
    const text = generate(model, prompt, { maxNewTokens: 8, useCache, onToken: (tokens) => seen.push(...(rows(tokens.unsqueeze(0)) as unknown[])) })
    expect(rows(text)).toEqual(recorded.greedy)
    expect(seen).toEqual(recorded.greedy[0]?.slice(4).map((_, i) => recorded.greedy.map((row) => row[4 + i])))
  })

  it.each(recorded.beams)('finds the texts that PyTorch finds: $options', async ({ options, texts }) => {
    const model = await recordedGpt2()
    for (const useCache of [true, false]) {
      const found = generate(model, prompt, { maxNewTokens: 6, ...options, padTokenId: 23, useCache }).narrow(1, 4, 6)
      expect(rows(found), `useCache: ${useCache}`).toEqual(texts.map((text) => [...text, ...Array.from({ length: 6 - text.length }, () => 23)]))
    }
  })

  it('ends each text at its end, and the loop when all have ended', async () => {
    const model = await recordedGpt2()
    const [first] = recorded.greedy
    const eosTokenId = first?.[5] ?? 0
    const text = rows(generate(model, prompt.narrow(0, 0, 1), { maxNewTokens: 8, eosTokenId }))
    expect(text).toEqual([first?.slice(0, 6)])
    const both = rows(generate(model, prompt, { maxNewTokens: 8, eosTokenId, padTokenId: 22 })) as number[][]
    expect(both[0]).toEqual([...(first?.slice(0, 6) ?? []), 22, 22, 22, 22, 22, 22])
    expect(both[1]).toEqual(recorded.greedy[1])
  })

  it('is in the mode that it was in, layer by layer', async () => {
    const model = await recordedGpt2()
    model.train()
    model.transformer.ln_f.train(false)
    generate(model, prompt, { maxNewTokens: 1 })
    expect([model.training, model.transformer.h.at(0).training, model.transformer.ln_f.training]).toEqual([true, true, false])
  })
})

test('enough beams find the best of all texts', () => {
  torch.manualSeed(5)
  const model = new GPT2({ vocabSize: 5, nPositions: 8, nEmbd: 8, nLayer: 1, nHead: 2 })
  for (const parameter of model.parameters()) parameter.detach().mul_(8)
  model.eval()
  const text = integers([[1, 2]])
  const found = rows(generate(model, text, { maxNewTokens: 3, numBeams: 25 })) as number[][]
  const all = Array.from({ length: 125 }, (_, i) => [1, 2, Math.floor(i / 25), Math.floor(i / 5) % 5, i % 5])
  const scores = noGrad(() =>
    model(integers(all))
      .narrow(1, 1, 3)
      .logSoftmax(-1)
      .gather(-1, integers(all).narrow(1, 2, 3).unsqueeze(-1))
      .sum([1, 2]),
  )
  expect(found[0]).toEqual(all[scores.argmax().item()])
})

describe.each(writers)('a cache changes nothing: %s', (_, make) => {
  const close = (a: Tensor, b: Tensor): void => expect(a.sub(b).abs().max().item()).toBeLessThan(2e-5 * Math.max(1, b.abs().max().item()))

  it('for scores, token by token and in pieces', () => {
    const model = make().train(false)
    const tokens = integers([
      [3, 1, 4, 1, 5, 9, 2, 6],
      [2, 7, 1, 8, 2, 8, 1, 8],
    ])
    noGrad(() => {
      const whole = model.call(tokens)
      for (const pieces of [
        [1, 1, 1, 1, 1, 1, 1, 1],
        [3, 4, 1],
      ]) {
        const cache = new DecodingCache()
        const parts = pieces.map((size) => model.call(tokens.narrow(1, cache.length, size), cache))
        close(torch.cat(parts, 1), whole)
        expect(cache.length).toBe(8)
      }
    })
  })

  it('for texts, greedy and by beams', () => {
    const model = make()
    const tokens = integers([
      [3, 1, 4],
      [2, 7, 1],
    ])
    for (const options of [{}, { numBeams: 3 }]) {
      const [kept, read] = [true, false].map((useCache) => rows(generate(model, tokens, { maxNewTokens: 5, useCache, ...options })))
      expect(kept).toEqual(read)
    }
  })
})

describe('models with an encoder', () => {
  it('T5 writes what PyTorch writes', async () => {
    const model = new T5({
      vocabSize: 24,
      dModel: 16,
      numHeads: 2,
      dKv: 8,
      dFf: 24,
      numLayers: 2,
      relativeAttentionNumBuckets: 8,
      relativeAttentionMaxDistance: 16,
    })
    model.loadStateDict(await loadTorchFile(golden('t5.pt')))
    const inputs = fromStored(recorded.t5.source)
    const start = integers([[0], [0]])
    for (const useCache of [true, false]) {
      expect(rows(generate(model, start, { inputs, maxNewTokens: 6, useCache }))).toEqual(recorded.t5.greedy)
      expect(rows(generate(model, start, { inputs, maxNewTokens: 6, numBeams: 3, useCache }).narrow(1, 1, 6))).toEqual(recorded.t5.beams)
    }
  })

  it('T5 and Whisper give the same scores with a cache', () => {
    torch.manualSeed(2)
    const sizes = { vocabSize: 20, dModel: 16 }
    const t5 = new T5({ ...sizes, numHeads: 2, dKv: 8, dFf: 24, numLayers: 2, feedForwardProj: 'gated-gelu', tieWordEmbeddings: false })
    const layers = { encoderLayers: 1, encoderAttentionHeads: 2, decoderLayers: 2, decoderAttentionHeads: 2 }
    const whisper = new Whisper({ ...sizes, ...layers, numMelBins: 6, maxSourcePositions: 8, maxTargetPositions: 10 })
    const tokens = integers([
      [3, 1, 4, 1, 5],
      [2, 7, 1, 8, 2],
    ])
    noGrad(() => {
      for (const [model, inputs] of [
        [t5, tokens],
        [whisper, torch.randn([2, 6, 16])],
      ] as const) {
        const states = model.encode(inputs)
        const whole = model.decode(tokens, states)
        const cache = new DecodingCache()
        const parts = [2, 1, 1, 1].map((size) => model.decode(tokens.narrow(1, cache.length, size), states, cache))
        expect(torch.cat(parts, 1).sub(whole).abs().max().item()).toBeLessThan(1e-5)
      }
    })
  })
})

describe('mistakes', () => {
  const model = new GPT2(gpt2)
  it.each<[string, () => unknown, RegExp]>([
    ['float tokens', () => generate(model, torch.ones([1, 2]), { maxNewTokens: 1 }), /'tokens' must be an int64 tensor \[batch, time\]/],
    ['no tokens', () => generate(model, torch.ones([1, 0]).long(), { maxNewTokens: 1 }), /at least one token/],
    ['temperature 0', () => generate(model, prompt, { maxNewTokens: 1, temperature: 0 }), /'temperature' must be above 0 \(leave it out/],
    ['topP 2', () => generate(model, prompt, { maxNewTokens: 1, topP: 2 }), /'topP' must be above 0 and at most 1, got 2/],
    ['no length', () => generate(model, prompt, { maxNewTokens: 0 }), /'maxNewTokens' must be an integer from 1 on, got 0/],
    ['beams that draw', () => generate(model, prompt, { maxNewTokens: 1, numBeams: 2, topK: 3 }), /'topK' draws tokens, but numBeams: 2/],
    ['inputs without an encoder', () => generate(model, prompt, { maxNewTokens: 1, inputs: prompt }), /'inputs' is for models with an encoder/],
  ])('%s', (_, call, message) => expect(call).toThrow(message))
})
