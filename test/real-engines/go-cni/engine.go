// An engine in Go: it calls CNI plugins through go-cni, as containerd, nerdctl, Nomad, buildkit, faasd and Concourse do,
// or through libcni alone, as CRI-O and others do. Its argument says which networks it has. Each line of stdin is a list
// of calls that are made at the same time, and each line of stdout the list of their answers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	cni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/libcni"
)

type settings struct {
	Library string
	Plugins []string
	Prefix  string
	// How many networks there must be before there is a status.
	LeastNetworks int
	// Network configuration lists, "loopback" for go-cni's own, or "directory" for the first file of Directory.
	Networks  []json.RawMessage
	Directory string
}

type call struct {
	Call, ID, Netns string
	// CNI_ARGS. go-cni makes them of labels.
	Labels       map[string]string
	Capabilities struct {
		PortMappings []cni.PortMapping
		Bandwidth    *cni.BandWidth
		IPRanges     []cni.IPRanges
		DNS          *cni.DNS
		IPs          []string
	}
	// For "lease": where host-local has its files, and whose is wanted.
	Directory, Owner string
}

type answer struct {
	Error  string      `json:"error,omitempty"`
	Result interface{} `json:"result,omitempty"`
}

type engine func(call) (interface{}, error)

func main() {
	var given settings
	must(json.Unmarshal([]byte(os.Args[1]), &given))
	open := withGoCNI
	if given.Library == "libcni" {
		open = withLibcni
	}
	serve, err := open(given)
	must(err)
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var calls []call
		must(json.Unmarshal(lines.Bytes(), &calls))
		must(out.Encode(answersTo(calls, serve)))
	}
}

func answersTo(calls []call, serve engine) []answer {
	answers, all := make([]answer, len(calls)), sync.WaitGroup{}
	for index := range calls {
		all.Add(1)
		go func(index int) {
			defer all.Done()
			result, err := serve(calls[index])
			answers[index].Result = result
			if err != nil {
				answers[index].Error = err.Error()
			}
		}(index)
	}
	all.Wait()
	return answers
}

func withGoCNI(given settings) (engine, error) {
	library, err := cni.New(
		cni.WithPluginDir(given.Plugins),
		cni.WithPluginConfDir(given.Directory),
		cni.WithInterfacePrefix(given.Prefix),
		cni.WithMinNetworkCount(given.LeastNetworks),
	)
	if err != nil {
		return nil, err
	}
	var networks []cni.Opt
	for _, network := range given.Networks {
		switch string(network) {
		case `"loopback"`:
			networks = append(networks, cni.WithLoNetwork)
		case `"directory"`:
			networks = append(networks, cni.WithDefaultConf)
		default:
			networks = append(networks, cni.WithConfListBytes(network))
		}
	}
	if err := library.Load(networks...); err != nil {
		return nil, err
	}
	return func(it call) (interface{}, error) {
		ctx := context.Background()
		switch it.Call {
		case "status":
			return nil, library.Status()
		case "setup":
			return library.Setup(ctx, it.ID, it.Netns, optionsOf(it)...)
		case "setup serially":
			return library.SetupSerially(ctx, it.ID, it.Netns, optionsOf(it)...)
		case "check":
			return nil, library.Check(ctx, it.ID, it.Netns, optionsOf(it)...)
		case "remove":
			return nil, library.Remove(ctx, it.ID, it.Netns, optionsOf(it)...)
		case "lease":
			return leaseOf(it.Directory, it.Owner, given.Prefix)
		}
		return nil, fmt.Errorf("no such call: %s", it.Call)
	}, nil
}

func optionsOf(it call) []cni.NamespaceOpts {
	options := []cni.NamespaceOpts{cni.WithLabels(it.Labels)}
	given := it.Capabilities
	if given.PortMappings != nil {
		options = append(options, cni.WithCapabilityPortMap(given.PortMappings))
	}
	if given.Bandwidth != nil {
		options = append(options, cni.WithCapabilityBandWidth(*given.Bandwidth))
	}
	if given.IPRanges != nil {
		options = append(options, cni.WithCapabilityIPRanges(given.IPRanges))
	}
	if given.DNS != nil {
		options = append(options, cni.WithCapabilityDNS(*given.DNS))
	}
	if given.IPs != nil {
		options = append(options, cni.WithCapability("ips", given.IPs))
	}
	return options
}

// libcni has one network, and the interface is the prefix with 0.
func withLibcni(given settings) (engine, error) {
	network, err := libcni.ConfListFromBytes(given.Networks[0])
	if err != nil {
		return nil, err
	}
	library := libcni.NewCNIConfig(given.Plugins, nil)
	return func(it call) (interface{}, error) {
		ctx, container := context.Background(), runtimeConf(it, given.Prefix+"0")
		switch it.Call {
		case "validate":
			return library.ValidateNetworkList(ctx, network)
		case "add":
			return library.AddNetworkList(ctx, network, container)
		case "check":
			return nil, library.CheckNetworkList(ctx, network, container)
		case "del":
			return nil, library.DelNetworkList(ctx, network, container)
		case "cached result":
			return library.GetNetworkListCachedResult(network, container)
		case "cached config":
			config, recorded, err := library.GetNetworkListCachedConfig(network, container)
			return map[string]interface{}{"config": json.RawMessage(config), "runtime": recorded}, err
		}
		return nil, fmt.Errorf("no such call: %s", it.Call)
	}, nil
}

func runtimeConf(it call, ifName string) *libcni.RuntimeConf {
	container := &libcni.RuntimeConf{ContainerID: it.ID, NetNS: it.Netns, IfName: ifName}
	for key, value := range it.Labels {
		container.Args = append(container.Args, [2]string{key, value})
	}
	if ports := it.Capabilities.PortMappings; ports != nil {
		container.CapabilityArgs = map[string]interface{}{"portMappings": ports}
	}
	return container
}

// How faasd finds a container's address: it opens whatever is in the directory, and looks at two lines.
func leaseOf(directory, owner, prefix string) (string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		file, err := os.Open(filepath.Join(directory, entry.Name()))
		if err != nil {
			return "", err
		}
		lines := bufio.NewReader(file)
		first, _ := lines.ReadString('\n')
		second, _ := lines.ReadString('\n')
		file.Close()
		if strings.Contains(first, owner) && strings.Contains(second, prefix) {
			return entry.Name(), nil
		}
	}
	return "", fmt.Errorf("no lease of %s", owner)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
