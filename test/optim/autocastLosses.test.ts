// Training in mixed precision: the losses of ResNet-18, the GPT and the UNet of examples/ under autocast stay beside those of float32, over 200 steps of the same batches from the same start.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { example } from '../examples/run.ts'

const STEPS = 200
/** Losses are compared as means of so many steps: one batch is noise. */
const WINDOW = 20

type Net = nn.Module & { forward(x: Tensor): Tensor }
const { ResNet18 } = (await import(example('resnet18/model.mjs'))) as { readonly ResNet18: new (sizes: object) => Net }
const { GPT } = (await import(example('gpt/model.mjs'))) as { readonly GPT: new (sizes: object) => Net }
const { UNet } = (await import(example('unet/model.mjs'))) as { readonly UNet: new (width: number) => Net }
const { readDigits } = (await import(example('data/digits.mjs'))) as {
  readonly readDigits: (bytes: Uint8Array) => Promise<{ train: { images: Float32Array; labels: Int32Array; count: number } }>
}
const { Characters, batch } = (await import(example('gpt/text.mjs'))) as {
  readonly Characters: new (text: string) => { readonly alphabet: string; encode(text: string): Tensor }
  readonly batch: (data: Tensor, count: number, length: number) => [Tensor, Tensor]
}

const { train } = await readDigits(readFileSync(example('data/digits.csv.gz')))
const digits = torch.tensor(train.images).reshape([train.count, 1, 8, 8])
const labels = torch.tensor(train.labels).to('int64')
const text = readFileSync(example('data/sonnets.txt'), 'utf8')
const characters = new Characters(text)
const encoded = characters.encode(text)

/** A model with its learning rate, and what draws a batch and computes its loss. */
interface Training {
  readonly model: Net
  readonly lr: number
  readonly draw: () => readonly Tensor[]
  readonly lossOf: (model: Net, batch: readonly Tensor[]) => Tensor
}
const pair = ([input, target]: readonly Tensor[]): [Tensor, Tensor] => {
  if (input === undefined || target === undefined) throw new Error('a batch is a pair')
  return [input, target]
}
const scored = (model: Net, given: readonly Tensor[]): Tensor => {
  const [input, target] = pair(given)
  const scores = model(input)
  return nn.functional.crossEntropy(scores.flatten(0, scores.ndim - 2), target.flatten())
}

const TRAININGS: Readonly<Record<string, () => Training>> = {
  'ResNet-18': () => ({
    model: new ResNet18({ width: 8, classes: 10 }),
    lr: 1e-4,
    draw: () => {
      const rows = torch.randint(0, train.count, [32])
      return [nn.functional.interpolate(digits.indexSelect(0, rows).expand(32, 3, 8, 8), { scaleFactor: 4 }), labels.indexSelect(0, rows)]
    },
    lossOf: scored,
  }),
  GPT: () => ({
    model: new GPT({ vocabulary: characters.alphabet.length, context: 16, width: 32, heads: 2, layers: 2 }),
    lr: 2e-3,
    draw: () => batch(encoded, 8, 16),
    lossOf: scored,
  }),
  UNet: () => ({
    model: new UNet(8),
    lr: 2e-3,
    draw: () => {
      const clean = digits.indexSelect(0, torch.randint(0, train.count, [16]))
      return [clean.add(torch.randn(clean.shape).mul(0.4)), clean]
    },
    lossOf: (model, given) => {
      const [noisy, clean] = pair(given)
      return nn.functional.mseLoss(model(noisy), clean)
    },
  }),
}

/** Means of the losses over windows of steps. */
function losses(make: () => Training, dtype: 'bfloat16' | null): number[] {
  torch.manualSeed(1)
  const { model, lr, draw, lossOf } = make()
  const optimizer = new optim.AdamW(model.parameters(), { lr })
  const step = compile((given: readonly Tensor[]) => {
    optimizer.zeroGrad()
    const loss = dtype === null ? lossOf(model, given) : torch.autocast({ dtype }, () => lossOf(model, given))
    loss.backward()
    optimizer.step()
    return loss.detach()
  })
  torch.manualSeed(2)
  const means: number[] = []
  for (let i = 0; i < STEPS; i++) means[Math.floor(i / WINDOW)] = (means[Math.floor(i / WINDOW)] ?? 0) + step(draw()).item() / WINDOW
  return means
}

describe.each(Object.entries(TRAININGS))('%s', (_name, make) => {
  it("has losses within 2% of float32's over 200 steps under autocast to bfloat16", () => {
    const [exact, mixed] = [losses(make, null), losses(make, 'bfloat16')]
    expect(exact.at(-1), 'it learns').toBeLessThan(0.8 * (exact[0] ?? 0))
    expect(mixed, 'it computes in another precision').not.toEqual(exact)
    const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length
    expect(Math.abs(mean(mixed) / mean(exact) - 1)).toBeLessThan(0.02)
  }, 240_000)
})
