// The live page of fit: what its server says and to whom, that it is told what the training reports, and that it ends with the run.
import { createServer, get } from 'node:http'
import { describe, expect, it } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { fit } from 'tensorfx/train'
import type { FitOptions } from 'tensorfx/train'
import { gradNorms } from '../../src/train/gradNorms.ts'
import { pointOf } from '../../src/train/page/data.ts'
import type { LivePoint } from '../../src/train/page/data.ts'
import { byteText, clockText, ticks } from '../../src/train/page/numbers.ts'
import { shortNumber } from '../../src/train/shortNumber.ts'

type Batch = readonly [Tensor, Tensor]

function training(batches: number, options: Partial<FitOptions<Batch>> = {}): FitOptions<Batch> {
  torch.manualSeed(0)
  const model = new nn.Sequential(new nn.Linear(4, 8), new nn.ReLU(), new nn.Linear(8, 1))
  const data = Array.from({ length: batches }, (): Batch => [torch.randn([16, 4]), torch.randn([16, 1])])
  return {
    model,
    optimizer: new optim.SGD(model.parameters(), { lr: 0.05 }),
    data,
    loss: (prediction, target) => nn.functional.mseLoss(prediction, target),
    epochs: 2,
    log: false,
    ...options,
  }
}

const request = (url: string, options: object = {}): Promise<{ status: number; text: string; headers: Readonly<Record<string, unknown>> }> =>
  new Promise((resolve, reject) => {
    get(url, { agent: false, ...options }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => (text += part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }))
      response.on('error', reject)
    }).on('error', reject)
  })

const pointsOf = (text: string): readonly LivePoint[] =>
  text
    .split('\n\n')
    .filter((part) => part.startsWith('data: '))
    .map((part) => pointOf(part.slice(6)))

describe('fit({ page })', () => {
  it('tells a listener the run from its beginning to its end, and closes', async () => {
    let url = ''
    let [events, page]: (ReturnType<typeof request> | null)[] = [null, null]
    const { history } = await fit(
      training(20, {
        page: { onOpen: (address) => (url = address) },
        validation: [[torch.randn([16, 4]), torch.randn([16, 1])]],
        // Long enough for some turns of the server.
        onStep: () => {
          events ??= request(`${url}events`)
          page ??= request(url)
          const until = performance.now() + 30
          while (performance.now() < until);
        },
      }),
    )
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    const { status, text, headers } = await (page ?? request(url))
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, 'text/html; charset=utf-8', 'no-store'])
    expect(headers['content-security-policy']).toMatch(/default-src 'none'/)
    expect(text).toContain('<h1>Training Sequential</h1>')
    expect(text).toContain('49 parameters')

    const points = pointsOf((await (events ?? request(url))).text)
    const epochs = points.filter((point) => point.kind === 'epoch')
    expect(epochs.map(({ values }) => values)).toEqual(history.map(({ values }) => values))
    const steps = points.filter((point) => point.kind === 'step')
    expect(steps.length).toBeGreaterThan(1)
    // The norm of gradients is not computed for the last step, unless it was due.
    expect(steps.at(-1)?.step).toBe(40)
    for (const { step, values } of steps) {
      expect(values['learningRate']).toBe(0.05)
      if (step < 40) expect(values['gradNorm']).toBeGreaterThan(0)
      expect(values['memory']).toBeGreaterThan(0)
    }
    const weights = points.filter((point) => point.kind === 'weights').at(-1)
    expect(weights?.rows.map(({ name, shape }) => [name, ...shape])).toEqual([
      ['0.weight', 8, 4],
      ['0.bias', 8],
      ['2.weight', 1, 8],
      ['2.bias', 1],
    ])
    for (const { counts, shape } of weights?.rows ?? []) expect(counts.reduce((sum, count) => sum + count, 0)).toBe(shape.reduce((a, b) => a * b, 1))
    expect(points.at(-1)).toEqual({ kind: 'end', text: 'done' })
    await expect(request(url)).rejects.toThrow(/ECONNREFUSED/)
  })

  it('says that a training failed', async () => {
    let url = ''
    let events: ReturnType<typeof request> | null = null
    const options = training(20, {
      page: { onOpen: (address) => (url = address) },
      onStep: (step) => {
        events ??= request(`${url}events`)
        const until = performance.now() + 40
        while (performance.now() < until);
        if (step === 12) throw new Error('no more')
      },
    })
    await expect(fit(options)).rejects.toThrow('no more')
    expect(pointsOf((await (events ?? request(url))).text).at(-1)).toEqual({ kind: 'end', text: 'failed' })
  })

  it('says which port is taken, before anything is read or computed', async () => {
    const other = createServer()
    const port = await new Promise<number>((resolve) => {
      other.listen(0, '127.0.0.1', () => {
        const address = other.address()
        resolve(typeof address === 'object' && address !== null ? address.port : 0)
      })
    })
    try {
      const options = training(1, { page: { port } })
      await expect(fit(options)).rejects.toThrow(
        new RegExp(`option 'page\\.port' must be a port that this program can listen on, got ${port} \\(.*EADDRINUSE.*leave it out`),
      )
      expect(options.model.training).toBe(true)
    } finally {
      await new Promise((resolve) => other.close(resolve))
    }
  })

  it('closes where onOpen throws', async () => {
    let url = ''
    const onOpen = (address: string): void => {
      url = address
      throw new Error('no browser')
    }
    await expect(fit(training(1, { page: { onOpen } }))).rejects.toThrow('no browser')
    await expect(request(url)).rejects.toThrow(/ECONNREFUSED/)
  })

  it('shows parameters that are complex, empty, constant or not finite', async () => {
    let url = ''
    let events: ReturnType<typeof request> | null = null
    const options = training(3, {
      page: { onOpen: (address) => (url = address) },
      onStep: () => {
        events ??= request(`${url}events`)
        const until = performance.now() + 60
        while (performance.now() < until);
      },
    })
    const extra: Record<string, Tensor> = {
      complex: torch.tensor([{ re: 3, im: -4 }]),
      empty: torch.ones([0]),
      constant: torch.full([3], -2),
      notFinite: torch.tensor([1, NaN, Infinity]),
    }
    for (const [name, values] of Object.entries(extra)) options.model.registerParameter(name, new nn.Parameter(values))
    await fit(options)
    const { text } = await (events ?? request(url))
    const weights = pointsOf(text)
      .filter((point) => point.kind === 'weights')
      .at(-1)
    const shown = weights?.rows.filter(({ name }) => name in extra).map(({ name, from, to, counts }) => [name, from, to, ...counts])
    expect(shown).toEqual([
      ['complex', 5, 5, 1],
      ['empty', 0, 0, 0],
      ['constant', -2, -2, 3],
      ['notFinite', NaN, NaN, 0],
    ])
  })

  it('answers this machine only, by its own name, and two addresses', async () => {
    let url = ''
    const answers: Promise<{ status: number }>[] = []
    await fit(
      training(12, {
        page: { onOpen: (address) => (url = address) },
        onStep: (step) => {
          if (step === 1)
            answers.push(
              request(url, { headers: { host: 'evil.example' } }),
              request(`${url}../etc/passwd`),
              request(url, { method: 'POST' }),
              request(url, { headers: { host: 'localhost:1' } }),
            )
          const until = performance.now() + 40
          while (performance.now() < until);
        },
      }),
    )
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([403, 404, 405, 200])
  })

  it('changes no numbers, compiled or not, with clipping or a scaler', async () => {
    for (const options of [{}, { clipGradNorm: 0.1, compile: false }, { autocast: 'float16' as const }]) {
      const [plain, watched] = [training(6, options), training(6, { ...options, page: true })]
      await fit(plain)
      await fit(watched)
      const [a, b] = [plain.model.stateDict(), watched.model.stateDict()]
      for (const [name, value] of a) expect(torch.equal(value as Tensor, b.get(name) as Tensor), name).toBe(true)
    }
  })

  it.each<[string, object, RegExp]>([
    ['a port that there is not', { port: 70_000 }, /option 'page\.port' must be an integer from 0 to 65535, got 70000/],
    ['a text', { onOpen: 'x' }, /onOpen/],
  ])('refuses %s', async (_, page, message) => {
    await expect(fit(training(1, { page }))).rejects.toThrow(message)
  })
})

it('norms of gradients are those of the gradients, NaN without one', () => {
  const model = new nn.Sequential(new nn.Linear(2, 2), new nn.Linear(2, 1))
  const second = model.at(1)
  if (!(second instanceof nn.Linear)) throw new Error('no layer')
  second.requiresGrad_(false)
  model
    .call(torch.ones([3, 2]))
    .sum()
    .backward()
  const norms = [gradNorms(model).toArray()].flat().map(Number)
  const own = [...model.parameters()].map((parameter) => parameter.grad?.norm().item() ?? NaN)
  expect(norms).toEqual(own)
  expect(norms.map(Number.isNaN)).toEqual([false, false, true, true])
})

describe('numbers of the page', () => {
  it('are short', () => {
    expect([0.012345, 12.3456, 1.2e-8, 0, NaN].map(shortNumber)).toEqual(['0.01235', '12.35', '1.20e-8', '0', 'NaN'])
    expect([999, 1000, 1_500_000].map(byteText)).toEqual(['999 B', '1 KB', '1.5 MB'])
    expect([9, 309, 3909].map(clockText)).toEqual(['0:09', '5:09', '1:05:09'])
  })

  it('have round ticks within the range', () => {
    for (const [from, to] of [
      [0, 1],
      [-3, 17],
      [0.00012, 0.00034],
    ] as const) {
      const found = ticks(from, to, 4)
      expect(found.length).toBeGreaterThanOrEqual(2)
      expect(found.length).toBeLessThanOrEqual(6)
      for (const tick of found) expect(tick >= from - 1e-12 && tick <= to + 1e-12).toBe(true)
    }
    expect(ticks(2, 2, 4)).toEqual([2])
  })
})
