// A model that is divided among four ranks, of which this process plays one: its forward, its units and its tree of modules.
import { nn, torch } from 'tensorfx'
import { destroyProcessGroup, initProcessGroup } from 'tensorfx/distributed'
import { FullyShardedDataParallel, describeUnits, getShardedModuleTreeWithModuleNameToFqns } from 'tensorfx/distributed/fsdp'

await initProcessGroup({ backend: 'fake', worldSize: 4, rank: 0 })
const model = new FullyShardedDataParallel(new nn.Sequential(new nn.Linear(5, 7), new nn.ReLU(), new nn.Linear(7, 3)))
model(torch.randn([2, 5]))
describeUnits(model)
getShardedModuleTreeWithModuleNameToFqns(model)
await destroyProcessGroup()
