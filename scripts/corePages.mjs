// A page that only runs saved models, on tensorfx/core: a network of convolutions and a transformer compute in the browser what tensorfx computes in Node. Part of npm run test:browser.
import { gzipSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { fx, nn, torch } from 'tensorfx'
import { saveGraphModule } from 'tensorfx/interop'
import { ResNet } from './pages/graphs.mjs'

/** Blocks of attention over tokens, and the scores of the next one. */
class Transformer extends nn.Module {
  constructor({ tokens = 31, width = 16, heads = 4, length = 7 } = {}) {
    super()
    this.embed = new nn.Embedding(tokens, width)
    this.place = new nn.Parameter(torch.randn([length, width]))
    this.blocks = new nn.Sequential(new Block(width, heads), new Block(width, heads))
    this.norm = new nn.LayerNorm(width)
    this.head = new nn.Linear(width, tokens, { bias: false })
  }

  forward(x) {
    return this.head(this.norm(this.blocks(this.embed(x).add(this.place))))
  }
}

class Block extends nn.Module {
  constructor(width, heads) {
    super()
    this.norm1 = new nn.LayerNorm(width)
    this.attention = new nn.MultiheadAttention(width, heads, { batchFirst: true })
    this.norm2 = new nn.LayerNorm(width)
    this.feed = new nn.Sequential(new nn.Linear(width, 4 * width), new nn.GELU(), new nn.Linear(4 * width, width))
  }

  forward(x) {
    const y = this.norm1(x)
    const z = x.add(this.attention(y, y, y)[0])
    return z.add(this.feed(this.norm2(z)))
  }
}

const MODELS = {
  'a ResNet-18': () => [new ResNet(8).eval(), torch.randn([2, 3, 32, 32])],
  'a transformer': () => [new Transformer().eval(), torch.randint(0, 31, [2, 7])],
}

const PROGRAM = `import { loadModel, tensor } from 'tensorfx/core'
globalThis.run = (file, values, shape, dtype) => {
  const model = loadModel(Uint8Array.from(atob(file), (c) => c.charCodeAt(0)))
  const y = model(tensor(values, { dtype }).reshape(shape))
  return { shape: y.shape, values: y.reshape([-1]).toArray() }
}`

/** Results may differ by the order of sums, where the two have other numbers of threads. */
const TOLERANCE = 1e-5

/** Returns the number of failures. */
export async function checkCorePages(browser) {
  const { outputFiles } = await build({
    stdin: { contents: PROGRAM, resolveDir: fileURLToPath(new URL('..', import.meta.url)), loader: 'js' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
  })
  let failures = 0
  const report = (ok, text) => {
    if (!ok) failures++
    console.log(`${ok ? 'ok    ' : 'FAILED'} core page: ${text}`)
  }
  const page = await browser.newPage()
  page.on('pageerror', ({ message }) => report(false, message))
  await page.addScriptTag({ type: 'module', content: outputFiles[0].text })
  await page.waitForFunction('globalThis.run !== undefined')
  torch.manualSeed(26)
  for (const [name, make] of Object.entries(MODELS)) {
    const [model, x] = make()
    const gm = fx.symbolicTrace(model)
    const expected = torch.noGrad(() => gm(x))
    const given = [Buffer.from(saveGraphModule(gm)).toString('base64'), x.reshape([-1]).toArray(), x.shape, x.dtype]
    // oxlint-disable-next-line no-await-in-loop -- one page
    const result = await page.evaluate((args) => globalThis.run(...args), given)
    const difference = torch.tensor(result.values).reshape(result.shape).sub(expected).abs().max().item()
    const scale = expected.abs().max().item()
    report(
      difference <= TOLERANCE * scale,
      `${name} computes what it does in Node (largest difference ${difference.toExponential(1)} of ${scale.toFixed(1)})`,
    )
  }
  await page.close()
  console.log(`       the page is ${(gzipSync(outputFiles[0].contents, { level: 9 }).length / 1000).toFixed(1)} KB packed`)
  return failures
}
