// What works under which Content-Security-Policy: the table in docs/guide/csp.md, tried in a browser with real headers. Part of npm run test:browser. The pages of the table load
// the built package as one bundle, as applications do; the page that starts a worker loads its files one by one, as a page without a bundler does.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const pageOf = (script) => `<!doctype html><meta charset="utf-8"><script type="module" src="${script}"></script>`

// Each part runs in a document of its own. `how` is what the notice means there.
const PARTS = {
  tensors: { how: '', run: 'const y = torch.ones([4]).add(1).sum(); check(y.item() === 8)' },
  GraphModule: {
    how: 'node by node',
    run: `const gm = symbolicTrace((x) => torch.relu(x).mul(2))
      check(gm.code.includes('torch.relu'))
      check(String(gm(torch.tensor([-1, 3])).toArray()) === '0,6')`,
  },
  compile: {
    how: 'prepared calls',
    run: `const model = new nn.Linear(3, 1)
      const f = compile((x) => model(x).relu().add(1).sum())
      f(torch.ones([2, 3])).backward()
      check(model.weight.grad !== null && f(torch.ones([2, 3])).item() >= 2)`,
  },
}

// Sends a tensor to a worker, which computes with it and sends the result back. Not part of the table.
const TRANSFER = `const worker = new Worker('/worker.mjs', { type: 'module' })
  const x = torch.randn([64, 32])
  let refusal = ''
  try { worker.postMessage(x) } catch (error) { refusal = error.message }
  check(refusal.includes('torch.fromTransfer'))
  const message = x.transfer()
  const answer = new Promise((resolve, reject) => { worker.onmessage = (event) => resolve(event.data); worker.onerror = (event) => reject(new Error(event.message)) })
  worker.postMessage(message, [message.buffer])
  check(message.buffer.byteLength === 0)
  const product = torch.fromTransfer(await answer)
  worker.terminate()
  check(torch.allclose(product, x.matmul(x.t())))`

const worker = `
  import { torch } from '/dist/index.js'
  onmessage = ({ data }) => {
    const x = torch.fromTransfer(data)
    const product = x.matmul(x.t()).transfer()
    postMessage(product, [product.buffer])
  }`

const program = `
  import { compile, nn, torch } from '/dist/index.js'
  import { symbolicTrace } from '/dist/entries/fx.js'
  let notices = 0
  console.warn = (text) => { if (String(text).includes('docs/guide/csp.md')) notices++ }
  const check = (ok) => { if (!ok) throw new Error('a wrong result') }
  const parts = { async transfer() { ${TRANSFER} }, ${Object.entries(PARTS)
    .map(([name, { run }]) => `${name}() { ${run} }`)
    .join(', ')} }
  try {
    const part = parts[new URL(location.href).searchParams.get('part')]
    await part()
    await part()
    globalThis.outcome = { ok: true, notices }
  } catch (error) {
    globalThis.outcome = { ok: false, name: error.name, message: error.message }
  }`

/** The rows of the table: the policy, and what each part does under it. */
function rows() {
  const lines = readFileSync(join(root, 'docs/guide/csp.md'), 'utf8').split('\n')
  const first = lines.findIndex((line) => line.startsWith('| `script-src`'))
  const cells = (line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
  const names = cells(lines[first])
    .slice(1)
    .map((cell) => cell.replaceAll('`', ''))
  const body = lines.slice(first + 2)
  const end = body.findIndex((line) => !line.startsWith('|'))
  return body.slice(0, end).map((line) => {
    const [policy, ...expected] = cells(line)
    return { policy: /^`(.*)`$/.exec(policy)?.[1] ?? null, expected: Object.fromEntries(names.map((name, i) => [name, expected[i]])) }
  })
}

const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.html': 'text/html' }

/** A program and what it imports of the built package in one file. */
async function bundled(contents) {
  const absolute = { name: 'absolute', setup: ({ onResolve }) => onResolve({ filter: /^\/dist\// }, ({ path }) => ({ path: join(root, path) })) }
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: 'js' },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    plugins: [absolute],
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
  })
  return outputFiles[0].text
}

/** Serves a page with the program as one file at `/`, and one that loads the built package file by file at `/files`. The request names the page's policy. */
async function serve() {
  const made = {
    '/': pageOf('/bundle.mjs'),
    '/bundle.mjs': await bundled(program),
    '/files': pageOf('/program.mjs'),
    '/program.mjs': program,
    '/worker.mjs': await bundled(worker),
  }
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost')
    const policy = searchParams.get('policy')
    const headers = { 'content-type': TYPES[extname(pathname)] ?? TYPES['.html'] }
    if (policy !== null && policy !== '') headers['content-security-policy'] = policy
    try {
      const body = made[pathname] ?? readFileSync(join(root, normalize(pathname)))
      response.writeHead(200, headers).end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** Tries each row of the table. Returns the number of cells that are wrong. */
export async function checkCsp(browser) {
  const server = await serve()
  const address = `http://127.0.0.1:${server.address().port}`
  const page = await browser.newPage()
  const outcomeOf = async (part, policy, path = '/') => {
    await page.goto(`${address}${path}?part=${part}&policy=${encodeURIComponent(policy)}`)
    // Not waitForFunction, which evaluates in the page and is forbidden to.
    let outcome
    for (let waited = 0; outcome === undefined; waited += 50) {
      if (waited > 60_000) throw new Error(`the page for ${part} under '${policy}' did not finish`)
      await page.waitForTimeout(50)
      outcome = await page.evaluate('globalThis.outcome')
    }
    return outcome
  }
  let failures = 0
  const report = (ok, text) => {
    if (!ok) failures++
    console.log(`${ok ? 'ok    ' : 'FAILED'} ${text}`)
  }
  for (const { policy, expected } of rows()) {
    const found = {}
    for (const [part, { how }] of Object.entries(PARTS)) {
      const { ok, notices, name, message } = await outcomeOf(part, policy === null ? '' : `script-src ${policy}`)
      if (ok) found[part] = notices === 0 ? 'yes' : notices === 1 ? how : `${notices} notices`
      else found[part] = message.includes("'wasm-unsafe-eval'") ? `\`${name}\`` : `${name}: ${message}`
    }
    const text = Object.entries(found).map(([part, what]) => `${part} ${what}`)
    report(
      Object.keys(PARTS).every((part) => found[part] === expected[part]),
      `script-src ${policy ?? '(no policy)'}: ${text.join(', ')}`,
    )
  }
  const { ok, message } = await outcomeOf('transfer', "script-src 'self' 'wasm-unsafe-eval'", '/files')
  report(ok, `a worker computes with a tensor that was sent to it${ok ? '' : `: ${message}`}`)
  await page.close()
  server.close()
  return failures
}
