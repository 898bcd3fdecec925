// npm run test:site: builds the site, which fails on a dead link, and drives it with its playground in headless Chromium. Where there is none, it says so and succeeds. A tenth of the
// examples of the guides runs in the playground, another one each day; `-- --all` runs all.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { day, launch } from './browser.mjs'
import { checkSite } from './pages/sitePages.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({ options: { all: { type: 'boolean', default: process.env.TENSORFX_FULL === '1' }, site: { type: 'string' } } })
if (values.site === undefined) execFileSync('node', [`${root}scripts/site/index.mjs`], { stdio: 'inherit' })
let turn = 0
const chosen = () => values.all || (turn++ + day) % 10 === 0
const browser = await launch('test:site')
let failures = 0
if (browser !== null) {
  try {
    failures = await checkSite(browser, values.site ?? `${root}site`, `${root}demo-report/site`, { root, chosen })
  } finally {
    await browser.close()
  }
  console.log(failures === 0 ? 'The site is right.' : `${failures} checks failed.`)
}
process.exitCode = failures === 0 ? 0 : 1
