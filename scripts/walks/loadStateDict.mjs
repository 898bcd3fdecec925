// The weights of one model are loaded into another.
import { nn } from 'tensorfx'

const make = () => new nn.Sequential(new nn.Linear(4, 8), new nn.BatchNorm1d(8), new nn.Linear(8, 2))
make().loadStateDict(make().stateDict())
