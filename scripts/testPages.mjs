// npm run test:pages: drives the pages of graphs, runs, profiles and documented programs in headless Chromium, on a desktop and a phone, light and dark. Their pictures are in demo-report/pages. Where there is no
// Chromium, it says so and succeeds. Part of npm run test:browser.
import { fileURLToPath } from 'node:url'
import { launch } from './browser.mjs'
import { checkDocsPages } from './pages/docsPages.mjs'
import { checkFilePages } from './pages/filePages.mjs'
import { checkGraphPages } from './pages/graphPages.mjs'
import { checkProfilePages } from './pages/profilePages.mjs'
import { checkReportPages } from './pages/reportPages.mjs'

const CHECKS = { docs: checkDocsPages, files: checkFilePages, graphs: checkGraphPages, runs: checkReportPages, profiles: checkProfilePages }
/** `npm run test:pages -- runs` drives only those. */
const chosen = process.argv.slice(2)
const browser = await launch('test:pages')
let failures = 0
if (browser !== null) {
  try {
    for (const [name, check] of Object.entries(CHECKS))
      if (chosen.length === 0 || chosen.includes(name))
        failures += await check(browser, fileURLToPath(new URL('../demo-report/pages', import.meta.url)))
  } finally {
    await browser.close()
  }
  console.log(failures === 0 ? 'All pages are right.' : `${failures} checks failed.`)
}
process.exitCode = failures === 0 ? 0 : 1
