// The Chromium that drives pages in tests.
import { existsSync } from 'node:fs'

const candidates = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
].filter(Boolean)

/** The number of the day, by which checks rotate, as in test/helpers/rotation.ts. */
export const day = Number(process.env.TENSORFX_ROTATION ?? Math.floor(Date.now() / 86_400_000))

/** Options by which WebGPU computes on the processor, so that it is there without a graphics card. */
const SOFTWARE_GPU = { args: ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'], ignoreDefaultArgs: ['--disable-gpu'] }

/** Starts the browser without a window; null, and a line that says so, where there is none. */
export async function launch(command, { software = false } = {}) {
  const executablePath = candidates.find((path) => existsSync(path))
  if (executablePath === undefined) {
    console.log(`${command}: no Chromium found (looked for CHROMIUM, chromium, google-chrome); nothing was tested.`)
    return null
  }
  const { chromium } = await import('playwright-core')
  const usual = ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run']
  const { args, ignoreDefaultArgs } = software ? SOFTWARE_GPU : { args: [], ignoreDefaultArgs: [] }
  return await chromium.launch({ executablePath, args: [...usual, ...args], ignoreDefaultArgs })
}
