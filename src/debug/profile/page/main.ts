// The program of the pages of a profile.
import { byId } from '../../../fx/viewer/page/elements/dom.ts'
import type { ProfileData } from './data.ts'
import { showFlames } from './flame.ts'
import { showMemory } from './memory.ts'

const data: ProfileData = JSON.parse(byId('data', HTMLScriptElement).textContent)
if (data.page === 'flame') showFlames(data)
else showMemory(data)
