// The playground: its page, the program of the page, the worker as a text (pages from a disk may start a worker only from a blob), and the examples.
import { readFileSync, readdirSync } from 'node:fs'
import { build } from 'esbuild'
import { framedPage } from '../../dist/docs/write/html.js'
import { examplesOf } from '../docs/examples.mjs'

const here = new URL('playground/', import.meta.url)

/** Where the worker seems to be: frames of stacks that come from there are the package's own. */
const PLACE = 'https://tensorfx.invalid/dist'

async function bundle(name, options = {}) {
  const { outputFiles } = await build({
    entryPoints: [new URL(name, here).pathname],
    bundle: true,
    // Names of classes stand in what modules print.
    ...{ minifyWhitespace: true, minifySyntax: true },
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    // What is optional for the package is not in the page.
    external: ['onnxruntime-web', 'webgpu', 'koffi', 'z3-solver', '@hpcc-js/wasm-graphviz', 'node:*'],
    define: { 'import.meta.url': JSON.stringify(`${PLACE}/entries/worker.js`) },
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
    ...options,
  })
  return outputFiles[0].text
}

/** Why an example does not run in a browser; null if it does. */
export function whyNot(code) {
  const imported = [...code.matchAll(/from '([^']+)'|^import '([^']+)'|import\('([^']+)'\)/gm)].map(([, a, b, c]) => a ?? b ?? c)
  if (imported.some((name) => name.startsWith('node:')) || /\bprocess\./.test(code)) return 'needs Node'
  if (imported.some((name) => /^tensorfx\/(?:distributed|register)/.test(name))) return 'needs Node'
  return null
}

/** The examples of the guides by name, and those of the playground first. */
export function playgroundExamples(root) {
  const own = readdirSync(new URL('examples/', here))
    .sort()
    .map((file) => {
      const source = readFileSync(new URL(`examples/${file}`, here), 'utf8')
      return [`Playground · ${/^\/\/ (.*?)[.:\n]/.exec(source)[1]}`, source]
    })
  const pages = ['docs/guide', 'docs/tutorials'].flatMap((folder) => readdirSync(root + folder).map((name) => `${folder}/${name}`))
  const guides = ['README.md', ...pages].sort().flatMap((file) => {
    const page = readFileSync(root + file, 'utf8')
    const title = /^# (.*)/.exec(page)[1].replaceAll('`', '')
    return examplesOf(page).map((example) => ({ file, title, ...example, source: [...example.before, example.code].join('') }))
  })
  return { own, guides: guides.map((one) => ({ ...one, name: `${one.title} · line ${one.line}`, why: whyNot(one.source) })) }
}

const body = `<main class="playground">
<h1 class="visually-hidden">Playground</h1>
<div class="bar"><select id="examples" aria-label="Examples"></select>
<span class="actions"><button type="button" id="run" class="main" title="Ctrl+Enter">Run</button><button type="button" id="compile">Compile</button><button type="button" id="explain">Explain</button><button type="button" id="compare">Compare</button><button type="button" id="minify">Minify</button><button type="button" id="stop" disabled>Stop</button></span>
<button type="button" id="share">Share</button><span id="status" role="status"></span></div>
<div class="panes"><div class="editor"><pre id="coloured" aria-hidden="true"></pre><textarea id="source" aria-label="Program" spellcheck="false" autocomplete="off" autocapitalize="off" wrap="off"></textarea></div>
<div class="results"><div role="tablist" class="tabs">${['output', 'graph', 'code', 'kernels', 'report', 'memory']
  .map((tab) => `<button type="button" role="tab" id="tab-${tab}" aria-controls="panel-${tab}">${tab}</button>`)
  .join('')}</div>
<div class="panels"><div role="tabpanel" id="panel-output"><div id="output"></div></div>
${['graph', 'code', 'kernels', 'report', 'memory'].map((tab) => `<div role="tabpanel" id="panel-${tab}" hidden><p class="soft">Run the program first.</p></div>`).join('\n')}</div></div></div>
</main>`

/** The page by its path. */
export const playgroundPages = (frame) => [
  [
    'playground',
    framedPage(
      {
        path: 'playground',
        title: 'Playground',
        body: `${body}\n${['worker', 'examples', 'page'].map((name) => `<script src="playground-${name}.js" defer></script>`).join('\n')}`,
      },
      frame,
    ),
  ],
]

const quoted = (value) => JSON.stringify(value).replaceAll('<', String.raw`\u003c`)

/** The scripts of the page by name. */
export async function playgroundFiles(root) {
  const [program, worker, page] = await Promise.all([
    bundle('program.mjs', { globalName: 'playgroundProgram' }),
    bundle('worker.mjs'),
    bundle('page.mjs'),
  ])
  const { own, guides } = playgroundExamples(root)
  const examples = Object.fromEntries([...own, ...guides.filter(({ why }) => why === null).map(({ name, source }) => [name, source])])
  return [
    ['playground-worker.js', `window.playgroundWorker = ${quoted(`${program}\n${worker}\n//# sourceURL=${PLACE}/worker.js\n`)}\n`],
    ['playground-examples.js', `window.playgroundExamples = ${quoted(examples)}\n`],
    ['playground-page.js', page],
  ]
}
