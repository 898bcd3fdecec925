// npm run generate: bundles the programs and styles of the pages, of a graph (src/fx/viewer/page), a run (src/debug/report/page), a profile (src/debug/profile/page), a training (src/train/page) and documentation (src/docs/page), into generated/page.ts beside each, as texts that
// are written into pages. Runs before build, typecheck, lint and tests. What it writes is not committed.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'

/** The rooms that have a page, and the notices that the licences of what is bundled ask for. */
const PAGES = [
  { room: 'fx/viewer', banner: '/* Layout by dagre, (c) 2012-2014 Chris Pettitt, MIT licence: github.com/dagrejs/dagre */' },
  { room: 'debug/report', banner: '' },
  { room: 'debug/profile', banner: '' },
  { room: 'train', banner: '' },
  { room: 'docs', banner: '' },
]

function bundle(file, banner) {
  const { outputFiles } = buildSync({
    entryPoints: [file],
    bundle: true,
    minify: true,
    format: 'iife',
    platform: 'browser',
    target: ['chrome111', 'firefox113', 'safari16.4'],
    // The banner has the notices.
    legalComments: 'none',
    banner: file.endsWith('.ts') ? { js: banner } : {},
    charset: 'utf8',
    write: false,
    tsconfigRaw: {},
    logLevel: 'silent',
  })
  return outputFiles[0].text.trim()
}

/** Writes the texts. Leaves files alone that are up to date, so that watchers see no change. */
export function generate() {
  for (const { room, banner } of PAGES) {
    const page = fileURLToPath(new URL(`../src/${room}/page/`, import.meta.url))
    const folder = new URL(`../src/${room}/generated/`, import.meta.url)
    const target = new URL('page.ts', folder)
    // `</script` and `<!--` would end or change the element that holds the program.
    const script = bundle(`${page}main.ts`, banner).replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')
    const text = `// Written by scripts/generateViewer.mjs; not committed.
/** The program of the page. */
export const PAGE_SCRIPT: string = ${JSON.stringify(script)}
/** The style of the page, without its colours. */
export const PAGE_STYLE: string = ${JSON.stringify(bundle(`${page}style.css`, ''))}
`
    mkdirSync(folder, { recursive: true })
    if (current(target) !== text) writeFileSync(target, text)
  }
}

function current(target) {
  try {
    return readFileSync(target, 'utf8')
  } catch {
    return null
  }
}

if (process.argv[1] !== undefined && fileURLToPath(import.meta.url) === fileURLToPath(pathToFileURL(process.argv[1]))) generate()
