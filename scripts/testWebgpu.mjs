// npm run test:webgpu: the tests that need a GPU, or a driver that computes on the CPU in its place. With --if-there they are left out, with the reason, where there is none; other arguments choose files.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

// Vulkan's loader reads the name of its driver when it is first used. Chromium brings a driver for the CPU.
const SOFTWARE = '/usr/lib/chromium/vk_swiftshader_icd.json'
if (process.env.VK_ICD_FILENAMES === undefined && existsSync(SOFTWARE)) process.env.VK_ICD_FILENAMES = SOFTWARE

/** What Node says of the GPU, in a process of its own: it is not loaded twice. */
const PROBE = `
const { create } = await import('webgpu')
const gpu = create([])
const adapter = await gpu.requestAdapter()
if (adapter === null) throw new Error('the driver offers no adapter')
console.log(adapter.info.description || adapter.info.vendor)
process.exit(0)
`

const ifThere = process.argv.includes('--if-there')
const chosen = process.argv.slice(2).filter((argument) => argument !== '--if-there')
const probe = spawnSync(process.execPath, ['--input-type=module', '--eval', PROBE], { encoding: 'utf8' })
if (probe.status !== 0) {
  const reason = probe.stderr.split('\n').find((line) => /Error/.test(line)) ?? `the process ended with ${probe.status ?? probe.signal}`
  console.log(`The tests on the GPU are left out: there is none here (${reason.trim()}). On Debian: apt-get install chromium libvulkan1.`)
  process.exit(ifThere ? 0 : 1)
}
console.log(`The tests run on: ${probe.stdout.trim()}`)
const { status } = spawnSync('npx', ['vitest', 'run', '--project', 'webgpu', ...chosen], { stdio: 'inherit' })
process.exit(status ?? 1)
