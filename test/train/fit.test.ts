// fit: the same numbers as a loop by hand, with each of its parts; going on after an interruption.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { DataLoader, TensorDataset, readJsonLines } from 'tensorfx/data'
import { EarlyStopping, JsonLinesWriter, MeanSquaredError, R2Score, fit } from 'tensorfx/train'
import type { FitOptions } from 'tensorfx/train'
import { removeFolder } from '../helpers/folder.ts'
import { isFull } from '../helpers/rotation.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tensorfx-fit-'))
})
afterEach(() => removeFolder(folder))

const { mseLoss } = nn.functional

/** A training, made anew. */
function training() {
  torch.manualSeed(3)
  const x = torch.randn([22, 4])
  const y = x.sum({ dim: 1, keepdim: true }).sin()
  const model = new nn.Sequential(new nn.Linear(4, 8), new nn.Dropout(0.2), new nn.Tanh(), new nn.Linear(8, 1))
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.05 })
  const data = new DataLoader(new TensorDataset(x, y), { batchSize: 4, shuffle: true })
  const options = { model, optimizer, data, loss: mseLoss, log: false } as const
  return { x, y, ...options, options }
}

type Options = Partial<FitOptions<readonly [Tensor, Tensor], nn.Module>>

/** The parameters after a loop by hand. */
async function byHand(epochs: number, { clip = 0, accumulate = 1 } = {}): Promise<unknown> {
  const { model, optimizer, data } = training()
  const schedule = new optim.StepLR(optimizer, 2)
  for (let epoch = 0; epoch < epochs; epoch++) {
    let i = 0
    model.train()
    for await (const [input, target] of data) {
      mseLoss(model(input), target).div(accumulate).backward()
      if (++i % accumulate === 0 || i === data.length) {
        if (clip > 0) nn.utils.clipGradNorm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zeroGrad()
      }
    }
    schedule.step()
  }
  return valuesOf(model)
}
const valuesOf = (model: nn.Module): unknown => [...model.stateDict().values()].map((value) => (value as Tensor).toArray())

describe('fit', () => {
  it.each([
    ['by itself', {}, {}],
    ['with clipping', { clipGradNorm: 0.1 }, { clip: 0.1 }],
    ['with accumulation', { accumulate: 4 }, { accumulate: 4 }],
  ] as const)('trains as a loop by hand: %s', async (_, options: Options, hand) => {
    const expected = await byHand(3, hand)
    const { model, optimizer, options: given } = training()
    const { history, step, stoppedEarly } = await fit({
      ...given,
      epochs: 3,
      compile: false,
      schedulers: [new optim.StepLR(optimizer, 2)],
      ...(options as object),
    })
    expect(valuesOf(model)).toEqual(expected)
    expect([history.length, stoppedEarly]).toEqual([3, false])
    expect(step).toBe(3 * Math.ceil(6 / ('accumulate' in options ? 4 : 1)))
    expect(history.map(({ epoch }) => epoch)).toEqual([1, 2, 3])
    expect(model.training).toBe(false)
  })

  it('computes the same in compiled steps, to rounding', async () => {
    const losses: number[][] = []
    for (const compiles of [false, true]) {
      const { options } = training()
      const { history } = await fit({ ...options, epochs: 4, compile: compiles, clipGradNorm: 1 })
      losses.push(history.map(({ values }) => values['loss'] ?? NaN))
    }
    const [eager = [], compiled = []] = losses
    expect(eager[3]).toBeLessThan(eager[0] ?? 0)
    for (const [i, loss] of compiled.entries()) expect(loss).toBeCloseTo(eager[i] ?? NaN, 4)
  })

  it('validates without dropout and gradients, with the averaged model, and reports metrics', async () => {
    const { x, y, options, model } = training()
    const metrics = { mse: new MeanSquaredError(), r2: new R2Score() }
    const { history, averaged } = await fit({ ...options, epochs: 2, validation: [[x, y] as const], metrics, ema: 0.9 })
    const values = history[1]?.values ?? {}
    expect(Object.keys(values)).toEqual([
      ...['loss', 'mse', 'r2', 'seconds', 'samplesPerSecond', 'dataWait'],
      ...['validation/loss', 'validation/mse', 'validation/r2'],
    ])
    expect(averaged).not.toBe(null)
    const expected = mseLoss((averaged ?? model).train(false)(x), y).item()
    expect(values['validation/loss']).toBeCloseTo(expected, 6)
    expect(values['validation/mse']).toBeCloseTo(expected, 6)
    expect(valuesOf(averaged ?? model)).not.toEqual(valuesOf(model))
    expect(values['mse']).toBeCloseTo(values['loss'] ?? NaN, 6)
  })

  it('stops early, by the score that is named', async () => {
    const { options, x, y } = training()
    const earlyStopping = new EarlyStopping({ patience: 2, monitor: 'constant' })
    const constant = new MeanSquaredError()
    constant.compute = () => 1
    const { history, stoppedEarly } = await fit({ ...options, epochs: 10, metrics: { constant }, earlyStopping })
    expect([history.length, stoppedEarly]).toEqual([3, true])
    const misspelled = new EarlyStopping({ monitor: 'validation/los' })
    await expect(fit({ ...options, epochs: 1, validation: [[x, y] as const], earlyStopping: misspelled })).rejects.toThrow(
      "earlyStopping monitors 'validation/los', but an epoch reports loss, seconds",
    )
  })

  it('goes on after an interruption with the same numbers, also in the middle of an epoch', async () => {
    const parts = ({ optimizer, options }: ReturnType<typeof training>) => ({
      ...options,
      epochs: 4,
      ema: 0.9,
      metrics: { mse: new MeanSquaredError() },
      schedulers: [new optim.StepLR(optimizer, 2)],
      stepSchedulers: [new optim.ExponentialLR(optimizer, 0.99)],
      earlyStopping: new EarlyStopping({ patience: 4 }),
    })
    const numbers = (history: readonly { readonly values: Readonly<Record<string, number>> }[]): unknown =>
      history.map(({ values }) => [values['loss'], values['mse']])
    const calm = training()
    const expected = await fit(parts(calm))
    for (const stop of isFull ? [3, 5, 6, 11, 20, 23] : [3, 20]) {
      const place = join(folder, String(stop))
      const interrupted = training()
      const onStep = (step: number): void => {
        if (step === stop) throw new Error('interrupted')
      }
      await expect(fit({ ...parts(interrupted), checkpoint: { folder: place, everySteps: 2 }, onStep })).rejects.toThrow('interrupted')
      const resumed = training()
      torch.manualSeed(99)
      const lines: string[] = []
      const result = await fit({ ...parts(resumed), checkpoint: { folder: place, everySteps: 2 }, log: (line) => void lines.push(line) })
      expect(numbers(result.history), `stopped at ${stop}`).toEqual(numbers(expected.history))
      expect(valuesOf(resumed.model)).toEqual(valuesOf(calm.model))
      expect(valuesOf(result.averaged ?? resumed.model)).toEqual(valuesOf(expected.averaged ?? calm.model))
      expect(result.step).toBe(expected.step)
      expect(lines[0]).toMatch(stop === 3 ? /goes on from .*: epoch 1, step 2$/ : /goes on from/)
      // A training that is over trains no more.
      expect((await fit({ ...parts(resumed), checkpoint: place })).step).toBe(expected.step)
    }
  })

  it('trains in mixed precision, and skips steps whose gradients overflow', async () => {
    for (const autocast of ['bfloat16', 'float16'] as const) {
      const { options } = training()
      const scaler = new torch.amp.GradScaler({ initScale: 2 ** 20 })
      const { history } = await fit({ ...options, epochs: 8, autocast, ...(autocast === 'float16' ? { scaler } : {}), compile: false })
      expect(history.at(-1)?.values['loss']).toBeLessThan(history[0]?.values['loss'] ?? 0)
      if (autocast === 'float16') expect(scaler.getScale()).toBeLessThanOrEqual(2 ** 20)
    }
  })

  it('writes each step and each epoch, and logs a line for each epoch', async () => {
    const { options } = training()
    const path = join(folder, 'log.jsonl')
    const lines: string[] = []
    await fit({ ...options, epochs: 2, writers: [new JsonLinesWriter(path)], log: (line) => void lines.push(line) })
    const rows = await readJsonLines<Record<string, number>>(path)
    expect(rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 12])
    expect(rows.filter((row) => 'seconds' in row).length).toBe(2)
    expect(lines.filter((line) => line.startsWith('epoch '))).toEqual([
      expect.stringMatching(/^epoch 1\/2: loss [\d.]+; .* samples\/s/),
      expect.stringMatching(/^epoch 2\/2: loss [\d.]+; .* samples\/s/),
    ])
  })

  it('takes a step of your own, and says once why a compiled one breaks', async () => {
    const { options, x } = training()
    const { loss: _, ...rest } = options
    const lines: string[] = []
    const { history } = await fit({
      ...rest,
      data: [x, x, x],
      epochs: 1,
      step: (model, batch: Tensor) => {
        const out = model(batch)
        return { loss: out.sum().item() > 1e9 ? out.sum() : out.square().mean() }
      },
      log: (line) => void lines.push(line),
    })
    expect(history[0]?.values['loss']).toBeGreaterThan(0)
    expect(lines.filter((line) => line.startsWith('the compiled step has several graphs: ')).length).toBe(1)
  })

  it('refuses what it cannot work with, before anything is computed', async () => {
    const { options, x } = training()
    const wrong = (given: object): Promise<unknown> => fit({ ...options, epochs: 1, ...given } as never)
    await expect(wrong({ epochs: 0 })).rejects.toThrow("fit: option 'epochs' must be an integer from 1 on, got 0")
    await expect(wrong({ loss: undefined })).rejects.toThrow("fit: give either 'loss' or 'step', got none")
    await expect(wrong({ step: () => ({}) })).rejects.toThrow("fit: give either 'loss' or 'step', got both")
    await expect(wrong({ optimiser: 1 })).rejects.toThrow("unknown option 'optimiser'; did you mean 'optimizer'?")
    await expect(wrong({ optimizer: 3 })).rejects.toThrow("option 'optimizer' must be an optimizer")
    await expect(wrong({ data: 3 })).rejects.toThrow("option 'data' must be batches")
    await expect(wrong({ metrics: { a: 1 } })).rejects.toThrow("option 'metrics.a' must be a Metric")
    await expect(wrong({ accumulate: 1.5 })).rejects.toThrow("option 'accumulate' must be an integer from 1 on, got 1.5")
    await expect(wrong({ clipGradNorm: -1 })).rejects.toThrow("option 'clipGradNorm' must be a positive number")
    await expect(wrong({ ema: 1 })).rejects.toThrow("option 'ema' must be a number from 0 to below 1")
    await expect(wrong({ autocast: 'int8' })).rejects.toThrow("option 'autocast' must be 'bfloat16' or 'float16'")
    await expect(wrong({ data: [] })).rejects.toThrow("'data' gave no batches")
    await expect(wrong({ data: [x] })).rejects.toThrow("with 'loss', batches must be [input, target]")
  })
})
